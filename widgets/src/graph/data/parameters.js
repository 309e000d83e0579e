// The parameters of items: how many, their share of the model, and which are tied to some that stand elsewhere.

import { count } from "../../shared/numbers.js";
import { dataSize, share } from "../../shared/units.js";
import { textAt } from "./data.js";
import { KINDS, ROOT } from "./hierarchy.js";

/** @typedef {import("./data.js").Data} Data @typedef {import("./hierarchy.js").Hierarchy} Hierarchy */
/**
 * Parameters in an item and below: those that have their first place in it, the elements of those that are tied to others
 * elsewhere, and how many have no size yet.
 *
 * @typedef {{counted: number, bytes: number, tied: number, unsized: number}} Parameters
 */

/** The column of parts that this is told from. */
export const COUNTED = "counted_params";
/** @type {[number, string][]} */
const LARGE = [[1e12, "T"], [1e9, "B"], [1e6, "M"]];

/** Tells whether a graph is a tree of modules, in which nothing is computed. @param {Data} data @param {Hierarchy} tree */
export function isModuleTree(data, tree) {
  return data.trees.includes(tree.graph);
}

/** @param {Data} data @param {Hierarchy} tree @param {number} item @returns {Parameters | null} null where the graph has no parameters as nodes */
export function parametersOf(data, tree, item) {
  if (tree.kind[item] === KINDS.node) return null;
  if (tree.kind[item] !== KINDS.part) return sum(tree.children[item].map((child) => parametersOf(data, tree, child)));
  const { counted_params, counted_bytes, tied_params, unsized_params } = data.parts.numbers;
  const row = tree.row[item];
  if (Number.isNaN(counted_params[row])) return null;
  return { counted: counted_params[row], bytes: counted_bytes[row], tied: tied_params[row], unsized: unsized_params[row] };
}

/** @param {(Parameters | null)[]} all */
function sum(all) {
  return all.reduce((total, one) => (total && one
    ? { counted: total.counted + one.counted, bytes: total.bytes + one.bytes, tied: total.tied + one.tied, unsized: total.unsized + one.unsized }
    : total ?? one), null);
}

/** Words the parameters of an item for its box: "1,600 params · 98.0 %". @param {Data} data @param {Hierarchy} tree @param {number} item */
export function parametersText(data, tree, item) {
  const known = parametersOf(data, tree, item);
  const same = sameModule(data, tree, item);
  if (same !== null) return `same module as ${same || "(root)"}`;
  if (!known) return "no params";
  const { counted, tied, unsized } = known;
  if (!counted && tied) return `${short(tied)} params, tied`;
  if (!counted) return unsized ? "params without sizes yet" : "no params";
  return [`${short(counted)} params`, tree.parent[item] === ROOT ? "" : shareText(data, tree, counted)].filter(Boolean).join(" · ");
}

/** Words for the details: how many, share, bytes, dtypes, and what is tied. @param {Data} data @param {Hierarchy} tree @param {number} item @returns {any[][]} */
export function parameterFields(data, tree, item) {
  const known = parametersOf(data, tree, item);
  if (!known) return [];
  const { counted, bytes, tied, unsized } = known;
  const [dtypes, tiedTo] = ["dtypes", "tied_to"].map((name) => (tree.kind[item] === KINDS.part ? textAt(data.parts.texts[name], tree.row[item]) : null));
  const of = counted ? ` (${shareText(data, tree, counted)} of the model)` : "";
  return [["parameters", `${count(counted)}${of}`], ["parameter bytes", counted ? dataSize(bytes) : null], ["parameter dtype", dtypes],
    ["tied", tied ? `${count(tied)} more, which count where they first stand${tiedTo ? `: ${tiedTo}` : ""}` : null],
    ["without sizes yet", unsized ? count(unsized) : null]];
}

/** @param {Data} data @param {Hierarchy} tree @param {number} counted */
function shareText(data, tree, counted) {
  const whole = parametersOf(data, tree, ROOT)?.counted ?? 0;
  return whole ? share(counted / whole) : "";
}

/** Returns the path of the module that a part is once more, under another name; null if it is none. @param {Data} data @param {Hierarchy} tree @param {number} item @returns {string | null} */
function sameModule(data, tree, item) {
  const own = tree.kind[item] === KINDS.part ? tree.own[tree.row[item]] : -1;
  const text = own < 0 ? null : textAt(data.nodes.texts.attributes, own);
  return text?.startsWith('{"same_as"') ? JSON.parse(text).same_as : null;
}

/** Writes a number in few letters: 1,600, 6.74B. @param {number} value */
function short(value) {
  const unit = LARGE.find(([size]) => value >= 0.9995 * size);
  return unit ? `${(value / unit[0]).toPrecision(3)}${unit[1]}` : count(value);
}
