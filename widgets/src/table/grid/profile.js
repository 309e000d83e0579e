// The profile of a column in its header: bars of how its numbers are spread, or its most frequent text.

import { h } from "../../shared/dom.js";

/**
 * @typedef {import("../columns.js").Column} Column
 * @typedef {{count: number, missing: number, bins?: number[], low?: any, high?: any, is_log?: boolean, top?: [string, number][], different?: number}} Profile
 */

/** Draws the profile. @param {Column} column @param {Profile} profile */
export function profilePicture(column, profile) {
  return profile.top ? mostFrequent(column, profile) : histogram(profile.bins ?? []);
}

/** Words the profile. @param {Column} column @param {Profile} profile @returns {string} */
export function profileText(column, { count, missing, low, high, is_log: isLog, top, different = 0 }) {
  const lacking = missing ? [`${percent(missing, count)} null`] : [];
  if (top) {
    const texts = top.map(([text, times]) => `${percent(times, count)} ${column.text(text)}`);
    return [...texts, ...(different > top.length ? [`${(different - top.length).toLocaleString("en")} more`] : []), ...lacking].join(", ");
  }
  if (low === null) return lacking.join();
  const range = low === high ? `all ${column.text(low)}` : `${column.text(low)} to ${column.text(high)}${isLog ? ", bars on a logarithmic scale" : ""}`;
  return [range, ...lacking].join(", ");
}

/** Draws bars of how many numbers each bin has. @param {number[]} bins */
export function histogram(bins) {
  const highest = Math.max(...bins, 1);
  return h("span", { class: "nb-histogram" }, ...bins.map((times) => {
    const bar = h("span", { "data-empty": times === 0 });
    bar.style.height = `${Math.max((100 * times) / highest, 8)}%`;
    return bar;
  }));
}

/** @param {Column} column @param {Profile} profile */
function mostFrequent(column, { top = [], different = 0, count }) {
  if (!top.length) return h("span", { class: "nb-frequent" });
  const [text, times] = top[0];
  const isEachOnce = different > 1 && times === 1;
  const share = h("span", { class: "nb-frequent" }, isEachOnce ? `${different.toLocaleString("en")} different` : `${percent(times, count)} ${column.text(text)}`);
  share.style.setProperty("--nb-share", String(isEachOnce ? 0 : times / count));
  return share;
}

/** @param {number} part @param {number} all */
function percent(part, all) {
  const share = (100 * part) / (all || 1);
  return share > 0 && share < 1 ? "<1 %" : share > 99 && share < 100 ? ">99 %" : `${Math.round(share)} %`;
}
