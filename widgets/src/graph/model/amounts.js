// Numbers of items: those of nodes and parts, and what a part has of all in it.

import { KINDS } from "../data/hierarchy.js";
import { count, general } from "../../shared/numbers.js";
import { dataSize, duration, flops, share } from "../../shared/units.js";

/** @typedef {import("../data/hierarchy.js").Hierarchy} Hierarchy @typedef {import("../data/data.js").Data} Data @typedef {import("../data/data.js").Value} Value */
/** @type {Record<string, (value: number) => string>} */
const FORMATS = {
  duration, flops, share, data_size: dataSize, count: (value) => count(Math.round(value)), error: (value) => value.toPrecision(4),
  ratio: (value) => `${general(value, 3)}×`, number: (value) => general(value, 4),
};
/** @type {Record<string, (left: number, right: number) => number>} */
const TOGETHER = { max: Math.max, min: Math.min };

/** Formats a number as its column says. @param {Value} value @param {number} amount */
export function amountText({ format }, amount) {
  return FORMATS[format](amount);
}

/** Returns the items, those below before those above. @param {Hierarchy} tree */
export function upward({ kind, depth }) {
  return Array.from(kind.keys()).sort((a, b) => depth[b] - depth[a]);
}

/** Returns a number of each item: its own, together with those of what is in it; NaN for none. @param {Data} data @param {Hierarchy} tree @param {string} way */
export function amountsOf(data, tree, way) {
  const value = /** @type {Value} */ (data.values.find(({ name }) => name === way));
  if (value.how !== "mean") return joined(tree, value.how, value.isInclusive, (item) => ownOf(data, tree, item, way));
  const rows = (/** @type {number} */ item) => ownOf(data, tree, item, `${way}_rows`);
  const sums = joined(tree, "sum", value.isInclusive, (item) => ownOf(data, tree, item, way) * rows(item));
  const counts = joined(tree, "sum", value.isInclusive, rows);
  return sums.map((sum, item) => sum / counts[item]);
}

/** @param {Hierarchy} tree @param {string} how @param {boolean} isInclusive whether what an item has itself is all @param {(item: number) => number} ownOf */
function joined(tree, how, isInclusive, ownOf) {
  const together = TOGETHER[how] ?? ((/** @type {number} */ left, /** @type {number} */ right) => left + right);
  const amounts = new Float64Array(tree.kind.length).fill(NaN);
  const add = (/** @type {number} */ item, /** @type {number} */ amount) => {
    if (!Number.isNaN(amount)) amounts[item] = Number.isNaN(amounts[item]) ? amount : together(amounts[item], amount);
  };
  for (const item of upward(tree)) {
    const own = ownOf(item);
    if (isInclusive && !Number.isNaN(own)) amounts[item] = own;
    else add(item, own);
    if (tree.parent[item] >= 0) add(tree.parent[item], amounts[item]);
  }
  return amounts;
}

/** @param {Data} data @param {Hierarchy} tree @param {number} item @param {string} name */
function ownOf(data, tree, item, name) {
  const table = tree.kind[item] === KINDS.node ? data.nodes : tree.kind[item] === KINDS.part ? data.parts : null;
  return table?.numbers[name]?.[tree.row[item]] ?? NaN;
}
