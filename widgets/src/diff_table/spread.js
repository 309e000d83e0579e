// How the values of a metric are spread, drawn above its slider: a histogram on a logarithmic axis, and what has no place on it.

import { cellText } from "../table/cells.js";
import { h } from "../shared/dom.js";
import { histogram } from "../table/grid/profile.js";
import { shareAt } from "./scale.js";
import { count } from "../shared/numbers.js";

/**
 * @typedef {import("./scale.js").Scale & {name: string, label: string, bins: number[], zero: number, infinite: number, missing: number,
 *   threshold: number | null, above: number | null}} Spread
 */

/** Returns the number of bins that hold nothing of at least `least`; the last one always does. @param {number | null | undefined} least @param {Spread} spread */
export function binsBelow(least, spread) {
  const { length } = spread.bins;
  return least ? Math.min(Math.floor(shareAt(least, spread) * length + 1e-9), length - 1) : 0;
}

/** Words the spread. @param {Spread} spread */
export function spreadText({ name, label, low, high, bins, zero, infinite, missing, threshold, above }) {
  const text = (/** @type {number} */ value) => cellText(name, "metric", value);
  const edge = (/** @type {number} */ index) => text(low * (high / low) ** (index / bins.length));
  const most = bins.indexOf(Math.max(...bins));
  const parts = [`${label}: ${text(low)} to ${text(high)} on a logarithmic axis`, `most from ${edge(most)} to ${edge(most + 1)}`];
  const beside = { zero, infinite, null: missing };
  for (const [what, times] of Object.entries(beside)) if (times) parts.push(`${count(times)} ${what}`);
  if (threshold !== null) parts.push(`${count(above ?? 0)} above the threshold ${text(threshold)}`);
  return parts.join(", ");
}

/** Draws the spread; `show` dims what a least value leaves out, `beside` counts the bins before and after the axis. @param {Spread} spread */
export function spreadPicture(spread) {
  const { low, high, zero, infinite, missing, threshold } = spread;
  const text = spreadText(spread);
  const bars = histogram(spread.bins);
  const line = h("span", { class: "nb-spread-threshold", hidden: threshold === null || threshold < low || threshold > high });
  line.style.insetInlineStart = `${100 * shareAt(threshold ?? low, spread)}%`;
  const highest = Math.max(...spread.bins, zero, infinite, missing);
  /** Draws a bin of its own, if it holds anything. @param {string} label @param {number} times */
  const odd = (label, times) => {
    const bar = h("i");
    bar.style.height = `${Math.max((20 * times) / highest, 2)}px`;
    return times ? [h("span", { class: "nb-spread-odd" }, bar, label)] : [];
  };
  const [before, after] = [odd("0", zero), [...odd("∞", infinite), ...odd("null", missing)]];
  const element = h("span", { class: "nb-spread", role: "img", "aria-label": text, title: text },
    ...before, h("span", { class: "nb-spread-axis" }, bars, line), ...after);
  const show = (/** @type {number | null | undefined} */ least) => {
    const below = binsBelow(least, spread);
    [...bars.children].forEach((bar, index) => bar.toggleAttribute("data-below", index < below));
  };
  return { element, show, beside: [before.length, after.length] };
}
