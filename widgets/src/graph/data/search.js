// Search: the items whose names fit a text, in the order of the hierarchy.

import { textAt } from "./data.js";
import { KINDS, ROOT } from "./hierarchy.js";

const NODE_TEXTS = ["op", "name", "module", "role", "inserted", "device", "sbp", "mesh", "ring", "peer"];
const PART_TEXTS = ["name", "module", "type", "role"];

/** @typedef {import("./data.js").Data} Data @typedef {import("./hierarchy.js").Hierarchy} Hierarchy */

/**
 * Returns the items that match a regular expression, ignoring case; a broken one is searched as plain text.
 * @param {Data} data @param {Hierarchy} tree @param {string} text
 * @returns {number[]}
 */
export function searchItems(data, tree, text) {
  if (!text) return [];
  const pattern = patternOf(text);
  const [nodes, parts] = [fitting(data.nodes, NODE_TEXTS, pattern), fitting(data.parts, PART_TEXTS, pattern)];
  const items = [];
  const waiting = [ROOT];
  while (waiting.length) {
    const item = /** @type {number} */ (waiting.pop());
    const [kind, row] = [tree.kind[item], tree.row[item]];
    if ((kind === KINDS.node && nodes(row)) || (kind === KINDS.part && parts(row))) items.push(item);
    for (let child = tree.children[item].length - 1; child >= 0; child -= 1) waiting.push(tree.children[item][child]);
  }
  return items;
}

/** @param {string} text */
function patternOf(text) {
  try {
    return new RegExp(text, "i");
  } catch {
    return new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "i");
  }
}

/** Returns a test whether a row has a matching text; each different text is tried once. @param {import("./data.js").Table} table @param {string[]} columns @param {RegExp} pattern */
function fitting({ texts }, columns, pattern) {
  const fits = columns.map((name) => ({ codes: texts[name].codes, isFit: Uint8Array.from(texts[name].values, (value) => Number(pattern.test(value))) }));
  return (/** @type {number} */ row) => fits.some(({ codes, isFit }) => codes[row] >= 0 && isFit[codes[row]] === 1);
}

/** Returns the match after, or before, the current item, around the end. @param {number[]} items @param {number} at @param {number} step @param {Hierarchy} tree @returns {number} -1 for none */
export function nextMatch(items, at, step, tree) {
  if (!items.length) return -1;
  const index = items.indexOf(at);
  if (index >= 0) return items[(index + step + items.length) % items.length];
  const order = before(tree, at);
  const next = at < 0 ? 0 : items.findIndex((item) => !order(item));
  const from = next < 0 ? items.length : next;
  return items[(from + (step > 0 ? 0 : -1) + items.length) % items.length];
}

/** Tells whether an item comes before another one in the hierarchy. @param {Hierarchy} tree @param {number} at */
function before({ parent, depth, children }, at) {
  return (/** @type {number} */ item) => {
    let [a, b] = [item, at];
    while (depth[a] > depth[b]) a = parent[a];
    if (a === b) return false;
    while (depth[b] > depth[a]) b = parent[b];
    if (a === b) return true;
    while (parent[a] !== parent[b]) [a, b] = [parent[a], parent[b]];
    const level = children[parent[a]];
    return level.indexOf(a) < level.indexOf(b);
  };
}

/** Returns the title of a match for a screen reader. @param {Data} data @param {Hierarchy} tree @param {number} item */
export function matchName({ nodes, parts }, tree, item) {
  const row = tree.row[item];
  return (tree.kind[item] === KINDS.node ? textAt(nodes.texts.name, row) : textAt(parts.texts.module, row) ?? textAt(parts.texts.name, row)) ?? "";
}
