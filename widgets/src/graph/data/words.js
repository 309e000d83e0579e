// What items and tensors are called: titles of boxes, second lines, labels of lines.

import { count } from "../../shared/numbers.js";
import { counted } from "../../shared/units.js";
import { numberAt, textAt } from "./data.js";
import { KINDS, ROOT } from "./hierarchy.js";
import { isModuleTree, parametersText } from "./parameters.js";

/** Characters of a title that a box has room for. */
const LONGEST = 48;

/** @typedef {import("./data.js").Data} Data @typedef {import("./hierarchy.js").Hierarchy} Hierarchy */

/** Shortens a text for a box. @param {string} text @param {number} [longest] */
export function cut(text, longest = LONGEST) {
  return text.length > longest ? `${text.slice(0, longest - 1)}…` : text;
}

/** Returns what an item is called, in full. @param {Data} data @param {Hierarchy} tree @param {number} item @returns {string} */
export function titleOf(data, tree, item) {
  const row = tree.row[item];
  switch (tree.kind[item]) {
    case KINDS.graph:
      return tree.graph;
    case KINDS.part:
      return textAt(data.parts.texts.name, row) || textAt(data.parts.texts.type, row) || "(root)";
    case KINDS.repeats:
      return `${repeated(data, row)} × ${tree.children[item].length}`;
    case KINDS.run:
      return runTitle(data, tree, item);
    default:
      return nodeTitle(data, row);
  }
}

/** Names an item: an op by its type, without what all op names of torch share, others by their name. @param {Data} data @param {number} row */
function nodeTitle({ nodes }, row) {
  const [kind, op, name] = ["kind", "op", "name"].map((column) => textAt(nodes.texts[column], row));
  if (kind === "op") return (op ?? name ?? "op").replace(/\.default$/, "");
  if (kind === "module") return name || op || "(root)";
  return name ?? kind ?? "";
}

/** Names what each of the repeats is. @param {Data} data @param {number} row */
function repeated({ parts }, row) {
  return textAt(parts.texts.type, row) ?? textAt(parts.texts.role, row) ?? textAt(parts.texts.name, row) ?? "part";
}

/** Names the first and last of a run. @param {Data} data @param {Hierarchy} tree @param {number} item */
function runTitle(data, tree, item) {
  const [first, last] = [firstIn(tree, item), lastIn(tree, item)].map((end) => cut(titleOf(data, tree, end), 24));
  return first === last ? `${first} …` : `${first} … ${last}`;
}

/** @param {Hierarchy} tree @param {number} item */
function firstIn(tree, item) {
  let at = item;
  while (tree.kind[at] === KINDS.run) at = tree.children[at][0];
  return at;
}

/** @param {Hierarchy} tree @param {number} item */
function lastIn(tree, item) {
  let at = item;
  while (tree.kind[at] === KINDS.run) at = /** @type {number} */ (tree.children[at].at(-1));
  return at;
}

/** Returns the second line: what an item is, and how much is in it. @param {Data} data @param {Hierarchy} tree @param {number} item */
export function subtitleOf(data, tree, item) {
  const row = tree.row[item];
  const kind = tree.kind[item];
  if (kind === KINDS.node) return nodeSubtitle(data, row);
  const nodes = isModuleTree(data, tree) ? parametersText(data, tree, item) : counted(tree.size[item], "node");
  if (kind === KINDS.run && tree.kind[firstIn(tree, item)] === KINDS.node) return `${nodes} from #${row}`;
  if (kind !== KINDS.part) return nodes;
  const { type, role, name } = data.parts.texts;
  const repeats = onlyRepeats(data, tree, item);
  const words = [textAt(type, row), textAt(role, row)].filter((text) => text && text !== textAt(name, row));
  if (words.length > 1 && words[0]?.toLowerCase() === words[1]?.toLowerCase()) words.pop();
  return [repeats ?? words.join(", "), nodes].filter(Boolean).join(" · ");
}

/** Words repeats as "32 × DecoderLayer" for a part that holds nothing else. @param {Data} data @param {Hierarchy} tree @param {number} item */
function onlyRepeats(data, tree, item) {
  const children = tree.children[item];
  if (children.length < 2 || !children.every((child) => tree.kind[child] === KINDS.part)) return null;
  const form = numberAt(data.parts.numbers.repeat_of, tree.row[children[0]]);
  const isOne = form !== null && children.every((child) => data.parts.numbers.repeat_of[tree.row[child]] === form);
  return isOne ? `${children.length} × ${repeated(data, tree.row[children[0]])}` : null;
}

/** @param {Data} data @param {number} row */
function nodeSubtitle({ nodes }, row) {
  const kind = textAt(nodes.texts.kind, row);
  const tensor = tensorText(textAt(nodes.texts.dtype, row), textAt(nodes.texts.shape, row));
  return [kind === "op" ? textAt(nodes.texts.role, row) : kind, tensor].filter(Boolean).join(" · ");
}

/** Words a tensor as "float32 [2, 8]", or what is known of it. @param {string | null} dtype @param {string | null} shape */
export function tensorText(dtype, shape) {
  return [dtype, shape?.replaceAll("null", "?")].filter(Boolean).join(" ");
}

/** Words what goes along a line: its tensor, or how many and what they have in common. @param {Data} data @param {number[]} edges */
export function lineText({ edges: { texts } }, edges) {
  const different = new Set(edges.map((edge) => tensorText(textAt(texts.dtype, edge), textAt(texts.shape, edge))));
  const [text] = different;
  if (edges.length === 1) return text || "tensor";
  return different.size === 1 && text ? `${count(edges.length)} × ${text}` : counted(edges.length, "tensor");
}

/** Returns the way from the graph down to an item. @param {Data} data @param {Hierarchy} tree @param {number} item */
export function pathOf(data, tree, item) {
  const names = [];
  for (let at = tree.parent[item]; at > ROOT; at = tree.parent[at]) names.push(titleOf(data, tree, at));
  return names.reverse().join(" › ");
}
