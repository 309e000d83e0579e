// Colors of numbers: one hue that gets stronger, or two on both sides of a center, in few steps that a legend names.

import { HUES } from "../../shared/picture/palette.js";
import { KINDS, ROOT } from "../data/hierarchy.js";
import { amountText } from "./amounts.js";

/** @typedef {import("../../shared/picture/palette.js").Category} Category @typedef {import("../data/data.js").Value} Value @typedef {import("../data/hierarchy.js").Hierarchy} Hierarchy */

/** Shares from which on a step of the scale begins: of what holds it for sums, else of the largest. */
const SHARES = [0, 0.01, 0.05, 0.2, 0.5];
const STEPS = 5;
/** Weakest and strongest fill: text on either bears 4.5:1 in light and dark. */
const [WEAKEST, STRONGEST] = [0.14, 0.6];
/** From how many times the smallest number on each step is as many times the one before. */
const WIDE = 50;
const WIDEST = 1e4;
/** Steps of a scale with a center begin at these parts of the largest distance. */
const ASIDE = [-0.6, -0.2, 0.2, 0.6];

/** @param {number} step @param {number} steps */
function strengthOf(step, steps) {
  return steps < 2 ? (WEAKEST + STRONGEST) / 2 : WEAKEST + ((STRONGEST - WEAKEST) * step) / (steps - 1);
}

/** Colors items by their share. @param {Hierarchy} tree @param {Value} value @param {Float64Array} amounts @returns {import("./colors.js").Colors} */
export function byShare(tree, { how, isInclusive }, amounts) {
  const isSum = how === "sum";
  const codes = Int16Array.from(amounts, (amount, item) => {
    const whole = amounts[isSum && !isInclusive ? Math.max(tree.parent[item], ROOT) : ROOT];
    return Number.isNaN(amount) || !(whole > 0) ? -1 : SHARES.findLastIndex((share) => amount / whole >= share);
  });
  const of = isInclusive ? "the model" : isSum ? "its part" : "the largest";
  const categories = SHARES.map((share, step) => stepOf(`${step ? `from ${100 * share}` : `below ${100 * SHARES[1]}`} % of ${of}`, "amber", strengthOf(step, SHARES.length)));
  return { categories, codes, counts: countsOf(tree, codes, categories) };
}

/** Returns the numbers that a scale is made of: those of all but the whole graph. @param {Float64Array} amounts */
export function finiteOf(amounts) {
  return [...amounts].filter((amount, item) => item !== ROOT && Number.isFinite(amount));
}

/** Colors items by the size of their number, on the scale of `finite`. @param {Hierarchy} tree @param {Value} value @param {Float64Array} amounts @param {string} caption @param {number[]} [finite] @returns {import("./colors.js").Colors} */
export function byScale(tree, value, amounts, caption, finite = finiteOf(amounts)) {
  const [low, high] = finite.reduce(([least, most], amount) => [Math.min(least, amount), Math.max(most, amount)], [Infinity, -Infinity]);
  const center = value.center !== null && low > 0 ? value.center : low < 0 ? 0 : null;
  const edges = center === null ? onOneSide(finite, low, high) : aroundCenter(low, high, center);
  const categories = Array.from({ length: edges.length + 1 }, (_, step) => {
    const label = labelOf(value, edges, step, high);
    if (center === null) return stepOf(label, "amber", strengthOf(step, edges.length + 1));
    const away = step - ASIDE.length / 2;
    return stepOf(label, away < 0 ? "blue" : away > 0 ? "amber" : "gray", away ? (STRONGEST * Math.abs(away)) / 2 : WEAKEST);
  });
  const codes = Int16Array.from(amounts, (amount) => (Number.isNaN(amount) ? -1 : edges.findLastIndex((edge) => amount >= edge) + 1));
  return { categories, codes, counts: countsOf(tree, codes, categories), caption };
}

/** Returns where the steps after the first begin, at numbers of two digits. @param {number[]} finite @param {number} low @param {number} high */
export function onOneSide(finite, low, high) {
  const least = Math.max(finite.reduce((smallest, amount) => (amount > 0 ? Math.min(smallest, amount) : smallest), Infinity), high / WIDEST);
  const isWide = high / least > WIDE;
  const edges = Array.from({ length: STEPS - 1 }, (_, at) => {
    const part = (at + 1) / STEPS;
    return Number((isWide ? least * (high / least) ** part : low + (high - low) * part).toPrecision(2));
  });
  return [...new Set(edges)].filter((edge) => edge > low && edge <= high);
}

/** @param {number} low @param {number} high @param {number} center 1 is that of ratios, whose distances are factors */
function aroundCenter(low, high, center) {
  const [to, from] = center === 1 ? [Math.log, Math.exp] : [(/** @type {number} */ x) => x, (/** @type {number} */ x) => x];
  const most = Math.max(Math.abs(to(low) - to(center)), Math.abs(to(high) - to(center))) || 1e-3;
  return ASIDE.map((part) => from(to(center) + part * most));
}

/** @param {Value} value @param {number[]} edges @param {number} step @param {number} only the number of a scale without edges */
function labelOf(value, edges, step, only) {
  if (!edges.length) return amountText(value, only);
  if (step === 0) return `below ${amountText(value, edges[0])}`;
  const from = amountText(value, edges[step - 1]);
  return step === edges.length ? `from ${from}` : `${from} to ${amountText(value, edges[step])}`;
}

/** @param {string} label @param {keyof typeof HUES} hue @param {number} strength @returns {Category} */
function stepOf(label, hue, strength) {
  return { label, color: HUES[hue], pattern: "", strength };
}

/** @param {Hierarchy} tree @param {Int16Array} codes @param {Category[]} categories */
function countsOf(tree, codes, categories) {
  const counts = categories.map(() => 0);
  codes.forEach((code, item) => {
    if (code >= 0 && tree.kind[item] === KINDS.node) counts[code] += 1;
  });
  return counts;
}
