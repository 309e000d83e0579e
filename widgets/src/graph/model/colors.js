// The colour of each item, by what its nodes have in common or by how much of a number they have.

import { CATEGORIES, deviceCategories, HUES, SEVERAL } from "../../shared/picture/palette.js";
import { textAt } from "../data/data.js";
import { byState } from "./differences.js";
import { KINDS, ROOT } from "../data/hierarchy.js";

/** @typedef {import("../../shared/picture/palette.js").Category} Category @typedef {import("../data/hierarchy.js").Hierarchy} Hierarchy @typedef {import("../data/data.js").Data} Data */
/** Categories in the order of the legend, and of each item which; -1 for none. @typedef {{categories: Category[], codes: Int16Array, counts: number[], caption?: string}} Colors */

/** @param {string} label @param {keyof typeof HUES} hue @param {string} [pattern] @returns {Category} */
const category = (label, hue, pattern = "") => ({ label, color: HUES[hue], pattern });

const ROLES = [
  category("embedding", "green"), category("rotary", "cyan", "slash"), category("norm", "cyan"), category("block", "grey"),
  category("attention", "violet"), category("time_mix", "violet", "slash"), category("channel_mix", "blue", "slash"), category("mlp", "blue"),
  category("head", "green", "slash"), category("loss", "magenta"), category("residual", "brown", "dots"), category("optimizer", "amber"),
  category("communication", "magenta", "slash"), category("cast", "brown"),
];
const PHASES = [category("forward", "blue"), category("backward", "amber"), category("recompute", "cyan", "slash"), category("optimizer", "green"), category("other", "grey")];
/** Shares from which on a step of the scale begins: of what holds it for sums, else of the largest. */
const STEPS = [0, 0.01, 0.05, 0.2, 0.5];
const HEAT = ["#b9b9b9", "#e0a458", "#d97706", "#c2410c", "#8f1d0e"];

/** Returns the name and label of each way to colour that shows something. @param {Data} data @returns {[string, string][]} */
export function waysOf({ nodes, values, correspondence }) {
  const texts = ["role", "phase", "inserted", "device", "dtype"].filter((name) => nodes.texts[name].values.length > 0);
  const [shown, last] = [texts.length ? texts : ["role"], values.map(({ name, label }) => /** @type {[string, string]} */ ([name, label]))];
  const difference = /** @type {[string, string][]} */ (correspondence ? [["difference", "difference"]] : []);
  return [...difference, ...shown.map((name) => /** @type {[string, string]} */ ([name, name === "inserted" ? "inserted by" : name])), ...last];
}

/** @param {Data} data @param {Hierarchy} tree @param {string} way @returns {Colors} */
export function coloured(data, tree, way) {
  if (way === "difference") return byState(data, tree, upward(tree));
  return data.values.some(({ name }) => name === way) ? byNumber(data, tree, way) : byText(data, tree, way);
}

/** @param {Data} data @param {Hierarchy} tree @param {string} way */
function byText(data, tree, way) {
  const { values } = data.nodes.texts[way];
  const known = way === "role" ? ROLES : way === "phase" ? PHASES : textCategories(values);
  const several = { ...CATEGORIES.phase[CATEGORIES.phase.length - 1], label: SEVERAL };
  const categories = [...known, several];
  const codeOf = new Map(known.map(({ label }, index) => [label, index]));
  const codes = new Int16Array(tree.kind.length).fill(-1);
  const counts = categories.map(() => 0);
  for (const item of upward(tree)) {
    codes[item] = ownCode(data, tree, item, way, codeOf) ?? common(tree.children[item], codes, known.length);
    if (codes[item] >= 0 && tree.kind[item] === KINDS.node) counts[codes[item]] += 1;
  }
  return { categories, codes, counts };
}

/** @param {string[]} values @returns {Category[]} */
function textCategories(values) {
  return deviceCategories(values).slice(0, values.length);
}

/** Returns the category that an item has by itself. @param {Data} data @param {Hierarchy} tree @param {number} item @param {string} way @param {Map<string, number>} codeOf */
function ownCode({ nodes, parts }, tree, item, way, codeOf) {
  const row = tree.row[item];
  if (tree.kind[item] === KINDS.node) return codeOf.get(textAt(nodes.texts[way], row) ?? "") ?? -1;
  if (tree.kind[item] === KINDS.run || !parts.texts[way]) return undefined;
  const known = tree.kind[item] === KINDS.graph ? undefined : codeOf.get(textAt(parts.texts[way], row) ?? "");
  // A part has a role of its own or none; what is in it may have others.
  return known ?? (way === "role" ? -1 : undefined);
}

/** Returns the category that all items share that have one. @param {number[]} items @param {Int16Array} codes @param {number} several */
function common(items, codes, several) {
  let shared = -1;
  for (const item of items) {
    if (codes[item] < 0 || codes[item] === shared) continue;
    shared = shared < 0 ? codes[item] : several;
  }
  return shared;
}

/** Returns the items, those below before those above. @param {Hierarchy} tree */
function upward({ kind, depth }) {
  return Array.from(kind.keys()).sort((a, b) => depth[b] - depth[a]);
}

/** @param {Data} data @param {Hierarchy} tree @param {string} way */
function byNumber(data, tree, way) {
  const amounts = amountsOf(data, tree, way);
  const { sums } = /** @type {import("../data/data.js").Value} */ (data.values.find(({ name }) => name === way));
  const codes = Int16Array.from(amounts, (amount, item) => {
    const whole = amounts[sums ? Math.max(tree.parent[item], ROOT) : ROOT];
    return Number.isNaN(amount) || !(whole > 0) ? -1 : STEPS.findLastIndex((step) => amount / whole >= step);
  });
  const counts = STEPS.map((_, code) => tree.kind.filter((kind, item) => kind === KINDS.node && codes[item] === code).length);
  const categories = STEPS.map((step, code) => ({ label: `${code ? `from ${100 * step}` : `below ${100 * STEPS[1]}`} % of ${sums ? "its part" : "the largest"}`, color: HEAT[code], pattern: "" }));
  return { categories, codes, counts };
}

/** Returns a number of each item: of nodes their own, of others the sum or the largest of what is in them; NaN for none. @param {Data} data @param {Hierarchy} tree @param {string} way */
export function amountsOf(data, tree, way) {
  const column = data.nodes.numbers[way];
  const sums = data.values.find(({ name }) => name === way)?.sums;
  const amounts = new Float64Array(tree.kind.length).fill(NaN);
  for (const item of upward(tree)) {
    if (tree.kind[item] === KINDS.node) amounts[item] = column[tree.row[item]];
    const above = tree.parent[item];
    if (above < 0 || Number.isNaN(amounts[item])) continue;
    const known = amounts[above];
    amounts[above] = Number.isNaN(known) ? amounts[item] : sums ? known + amounts[item] : Math.max(known, amounts[item]);
  }
  return amounts;
}
