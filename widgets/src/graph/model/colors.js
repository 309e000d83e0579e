// The color of each item, by what its nodes have in common or by how much of a number they have.

import { CATEGORIES, deviceCategories, HUES, SEVERAL } from "../../shared/picture/palette.js";
import { counted } from "../../shared/units.js";
import { textAt } from "../data/data.js";
import { amountsOf, upward } from "./amounts.js";
import { byState } from "./differences.js";
import { byScale, byShare } from "./scale.js";
import { KINDS } from "../data/hierarchy.js";

/** @typedef {import("../../shared/picture/palette.js").Category} Category @typedef {import("../data/hierarchy.js").Hierarchy} Hierarchy @typedef {import("../data/data.js").Data} Data */
/** Categories in the order of the legend, and of each item which; -1 for none. @typedef {{categories: Category[], codes: Int16Array, counts: number[], caption?: string}} Colors */

/** @param {string} label @param {keyof typeof HUES} hue @param {string} [pattern] @returns {Category} */
const category = (label, hue, pattern = "") => ({ label, color: HUES[hue], pattern });

const ROLES = [
  category("embedding", "green"), category("rotary", "cyan", "slash"), category("norm", "cyan"), category("block", "gray"),
  category("attention", "violet"), category("time_mix", "violet", "slash"), category("channel_mix", "blue", "slash"), category("mlp", "blue"),
  category("head", "green", "slash"), category("loss", "magenta"), category("residual", "brown", "dots"), category("optimizer", "amber"),
  category("communication", "magenta", "slash"), category("cast", "brown"),
];
const PHASES = [category("forward", "blue"), category("backward", "amber"), category("recompute", "cyan", "slash"), category("optimizer", "green"), category("other", "gray")];
/** Categories of an overlay that have a color of their own. */
const MOST = 11;

/** Returns the name and label of each way to color that shows something, what was asked for first. @param {Data} data @returns {[string, string][]} */
export function waysOf({ nodes, values, correspondence, overlay, trees, graphs }) {
  const known = ["role", "phase", "inserted", "device", "sbp", "mesh", "ring", "peer", "dtype"].filter((name) => nodes.texts[name].values.length > 0);
  const ofTexts = (known.length ? known : ["role"]).map((name) => /** @type {[string, string]} */ ([name, name === "inserted" ? "inserted by" : name]));
  const ofValues = values.map(({ name, label }) => /** @type {[string, string]} */ ([name, label]));
  const difference = /** @type {[string, string][]} */ (correspondence ? [["difference", "difference"]] : []);
  const asked = /** @type {[string, string][]} */ (overlay ? [["overlay", overlay.label]] : []);
  // Of modules only what they hold, which is not shown at first, has a dtype and a device.
  const isEarly = (/** @type {[string, string]} */ [name]) => trees.length < graphs.length || name === "role";
  const others = [...ofTexts.filter(isEarly), ...ofValues, ...ofTexts.filter((way) => !isEarly(way))];
  return [...asked, ...difference, ...others.filter(([name]) => name !== "overlay")];
}

/** @param {Data} data @param {Hierarchy} tree @param {string} way @returns {Colors} */
export function colored(data, tree, way) {
  if (way === "difference") return byState(data, tree, upward(tree));
  const value = data.values.find(({ name }) => name === way);
  if (!value) return byText(data, tree, way);
  const amounts = amountsOf(data, tree, way);
  return value.isScaled ? byScale(tree, value, amounts, data.overlay?.caption ?? "", data.numbersOf?.(way)) : byShare(tree, value, amounts);
}

/** @param {Data} data @param {Hierarchy} tree @param {string} way @returns {Colors} */
function byText(data, tree, way) {
  const known = way === "role" ? ROLES : way === "phase" ? PHASES : way === "overlay" ? overlayCategories(data) : textCategories(data.nodes.texts[way].values);
  const several = { ...CATEGORIES.phase[CATEGORIES.phase.length - 1], label: SEVERAL };
  const categories = [...known, several];
  const codeOf = new Map(known.map(({ label }, index) => [label, index]));
  const codes = new Int16Array(tree.kind.length).fill(-1);
  const counts = categories.map(() => 0);
  for (const item of upward(tree)) {
    const own = way === "overlay" ? overlaid(data, tree, item, categories) : ownCode(data, tree, item, way, codeOf);
    // What was joined to a part by several rows says as little of what is in it as a row of an op does.
    const isAll = own !== undefined && (way !== "overlay" || data.overlay?.isInclusive);
    const inside = tree.children[item].map((child) => codes[child]);
    codes[item] = isAll ? own : common(own === undefined ? inside : [own, ...inside], known.length);
    if (codes[item] >= 0 && tree.kind[item] === KINDS.node) counts[codes[item]] += 1;
  }
  return { categories, codes, counts, caption: way === "overlay" ? data.overlay?.caption : "" };
}

/** Categories of an overlay, those of the most rows with a color of their own. @param {Data} data @returns {Category[]} */
function overlayCategories({ nodes, parts, overlay }) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const { values, codes } of [nodes.texts.overlay, parts.texts.overlay]) for (const code of codes) if (code >= 0) counts.set(values[code], (counts.get(values[code]) ?? 0) + 1);
  counts.delete(SEVERAL);
  const names = [...counts.keys()].sort((left, right) => Number(counts.get(right)) - Number(counts.get(left)) || (left < right ? -1 : 1));
  const looks = overlay?.looks ?? {};
  // Categories whose colors say something stand in an order that says something, too.
  if (names.every((name) => Object.hasOwn(looks, name))) return Object.entries(looks).filter(([name]) => counts.has(name)).map(([name, [hue, pattern]]) => category(name, hue, pattern));
  const rest = names.length - MOST;
  return rest > 0 ? [...textCategories(names.slice(0, MOST)), category(counted(rest, "other"), "gray", "dots")] : textCategories(names);
}

/** Returns the category that an overlay gives an item itself. @param {Data} data @param {Hierarchy} tree @param {number} item @param {Category[]} categories the last two are for the others, and for several */
function overlaid({ nodes, parts }, tree, item, categories) {
  const table = tree.kind[item] === KINDS.node ? nodes : tree.kind[item] === KINDS.part ? parts : null;
  const text = table && textAt(table.texts.overlay, tree.row[item]);
  if (text === null) return undefined;
  const code = categories.findIndex(({ label }) => label === text);
  return code < 0 ? categories.length - 2 : code;
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

/** Returns the category that all share that have one. @param {number[]} codes @param {number} several */
function common(codes, several) {
  let shared = -1;
  for (const code of codes) {
    if (code < 0 || code === shared) continue;
    shared = shared < 0 ? code : several;
  }
  return shared;
}
