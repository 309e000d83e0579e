// What is told of an item: its fields, and the tensors that it reads and gives, with the nodes at their other ends.

import { count } from "../../shared/numbers.js";
import { comparedWords } from "../data/correspondence.js";
import { numberAt, textAt } from "../data/data.js";
import { isBelow, leaves } from "../data/edges.js";
import { KINDS } from "../data/hierarchy.js";
import { COUNTED, parameterFields } from "../data/parameters.js";
import { amountText } from "./amounts.js";
import { pathOf, subtitleOf, tensorText, titleOf } from "../data/words.js";

/** Most tensors that are listed. */
const MOST = 60;
const NODE_FIELDS = ["kind", "op", "name", "module", "role", "phase", "inserted", "dtype", "shape", "device", "sbp", "mesh", "ring", "peer", "source"];
const PART_FIELDS = ["type", "module", "role", "phase", "evidence"];
/** @typedef {import("../data/data.js").Data} Data @typedef {import("../data/hierarchy.js").Hierarchy} Hierarchy @typedef {import("../data/edges.js").Edges} Edges */
/**
 * A tensor: what it is called, what it is, and the node at its other end; -1 for the outside.
 *
 * @typedef {{slot: string, tensor: string, node: number, name: string}} Tensor
 * @typedef {{title: string, path: string, fields: [string, string][], attributes: [string, string][],
 *   lists: {title: string, total: number, tensors: Tensor[]}[]}} Details
 */

/** @param {Data} data @param {Hierarchy} tree @param {Edges} edges @param {number} item @param {Record<string, Float64Array>} amounts of each item @param {[string, string | null]} category what an overlay of texts says of it @returns {Details} */
export function detailsOf(data, tree, edges, item, amounts, category) {
  const isNode = tree.kind[item] === KINDS.node;
  const row = tree.row[item];
  const compared = comparedWords(data, tree, item);
  const fields = isNode ? nodeFields(data, row) : groupFields(data, tree, item);
  const values = data.values.filter(({ name }) => name !== COUNTED && !Number.isNaN(amounts[name][item])).map((value) => [value.label, amountText(value, amounts[value.name][item])]);
  const own = tree.kind[item] === KINDS.part ? tree.own[row] : -1;
  const described = isNode ? row : own;
  return {
    title: titleOf(data, tree, item), path: pathOf(data, tree, item), fields: [...known([["compared", compared], category, ...values]), ...fields],
    attributes: described < 0 ? [] : attributesOf(textAt(data.nodes.texts.attributes, described)), lists: listsOf(data, tree, edges, item),
  };
}

/** @param {Data} data @param {number} row @returns {[string, string][]} */
function nodeFields({ nodes }, row) {
  const texts = NODE_FIELDS.map((name) => [name, name === "module" ? moduleText(textAt(nodes.texts.module, row)) : textAt(nodes.texts[name], row)]);
  const line = numberAt(nodes.numbers.line, row);
  return known([...texts, ["line of the file", line === null ? null : count(line)], ["node", `#${row}`]]);
}

/** @param {Data} data @param {Hierarchy} tree @param {number} item @returns {[string, string][]} */
function groupFields(data, tree, item) {
  const row = tree.row[item];
  const nodes = tree.size[item] ? count(tree.size[item]) : null;
  const parameters = parameterFields(data, tree, item);
  if (tree.kind[item] !== KINDS.part) return known([["holds", subtitleOf(data, tree, item)], ...parameters]);
  const { texts, numbers } = data.parts;
  const words = PART_FIELDS.filter((name) => texts[name]).map((name) => [name, name === "module" ? moduleText(textAt(texts.module, row)) : textAt(texts[name], row)]);
  const [number, params] = [numberAt(numbers.number, row), numberAt(numbers.params, row)];
  return known([...words, ["repeat", number === null ? null : count(number)], ["nodes shown", nodes],
    ...(parameters.length ? parameters : [["parameters", params === null ? null : count(params)]]), ["part", `#${row}`]]);
}

/** @param {string | null} path */
function moduleText(path) {
  return path === "" ? "(root)" : path;
}

/** @param {any[][]} fields @returns {[string, string][]} */
function known(fields) {
  return /** @type {[string, string][]} */ (fields.filter(([, text]) => text !== null && text !== undefined && text !== ""));
}

/** Returns the attributes of a node as names and texts. @param {string | null} text JSON, which may have been cut @returns {[string, string][]} */
function attributesOf(text) {
  if (!text) return [];
  try {
    const attributes = JSON.parse(text);
    if (attributes === null || typeof attributes !== "object") return [["attributes", text]];
    return Object.entries(attributes).map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)]);
  } catch {
    return [["attributes", text]];
  }
}

/** @param {Data} data @param {Hierarchy} tree @param {Edges} edges @param {number} item */
function listsOf(data, tree, edges, item) {
  const inputs = [];
  const outputs = [];
  for (const node of leaves(tree, item)) {
    for (const edge of edges.in.of(node)) if (!isInside(tree, edges.itemOf(edges.src[edge]), item)) inputs.push(edge);
    for (const edge of edges.out.of(node)) if (!isInside(tree, edges.itemOf(edges.dst[edge]), item)) outputs.push(edge);
  }
  const list = (/** @type {string} */ title, /** @type {number[]} */ edgeRows, /** @type {Int32Array} */ ends) => (
    { title, total: edgeRows.length, tensors: edgeRows.slice(0, MOST).map((edge) => tensorOf(data, edge, ends[edge], title === "Reads")) });
  return [list("Reads", inputs, edges.src), list("Gives", outputs, edges.dst)];
}

/** @param {Hierarchy} tree @param {number} item @param {number} holder */
function isInside(tree, item, holder) {
  return item >= 0 && isBelow(tree, item, holder);
}

/** @param {Data} data @param {number} edge @param {number} node @param {boolean} isRead @returns {Tensor} */
function tensorOf({ nodes, edges }, edge, node, isRead) {
  const [slot, tensor, dtype, shape, sbp] = ["slot", "tensor", "dtype", "shape", "sbp"].map((name) => textAt(edges.texts[name], edge));
  const name = node < 0 ? "outside of the graph" : textAt(nodes.texts.name, node) || textAt(nodes.texts.op, node) || textAt(nodes.texts.kind, node) || "";
  return { slot: (isRead ? slot : null) ?? "", tensor: [tensorText(dtype, shape), sbp, tensor].filter(Boolean).join(" · "), node, name };
}

/** Returns what a screen reader hears of an item. @param {Data} data @param {Hierarchy} tree @param {number} item @param {boolean} isOpen @param {import("../data/edges.js").Edges} edges */
export function announcement(data, tree, item, isOpen, edges) {
  const words = [titleOf(data, tree, item), subtitleOf(data, tree, item), comparedWords(data, tree, item)];
  if (tree.children[item].length) words.push(isOpen ? "open" : "closed");
  else if (tree.kind[item] === KINDS.node) words.push(`reads ${edges.in.of(tree.row[item]).length}, read by ${edges.out.of(tree.row[item]).length}`);
  const path = pathOf(data, tree, item);
  return [...words, path ? `in ${path}` : ""].filter(Boolean).join(", ");
}
