// The color of each item by how it compares with its counterpart in the other graph.

import { HUES } from "../../shared/picture/palette.js";
import { levelOf, STATES } from "../data/correspondence.js";
import { idsOf, VALUES } from "../data/data.js";
import { KINDS } from "../data/hierarchy.js";

/** Categories in the order of STATES. @type {import("../../shared/picture/palette.js").Category[]} */
const CATEGORIES = [
  { label: "same", color: HUES.gray, pattern: "" },
  { label: "other dtype", color: HUES.amber, pattern: "slash" },
  { label: "other shape or size", color: HUES.magenta, pattern: "backslash" },
  { label: "only here", color: HUES.violet, pattern: "dots" },
  { label: "differences inside", color: HUES.blue, pattern: "" },
];

/** @param {import("../data/data.js").Data} data @param {import("../data/hierarchy.js").Hierarchy} tree @param {number[]} order items with those below before those above @returns {import("./colors.js").Colors} */
export function byState(data, tree, order) {
  const correspondence = /** @type {import("../data/correspondence.js").Correspondence} */ (data.correspondence);
  const codes = new Int16Array(tree.kind.length).fill(-1);
  const counts = CATEGORIES.map(() => 0);
  const values = valuesIn(data);
  for (const item of order) {
    const table = levelOf(tree, item);
    const own = table ? correspondence.stateOf(table, tree.row[item]) : -1;
    const inside = [own, ...tree.children[item].map((child) => codes[child])];
    if (table === "parts") inside.push(...(values.get(tree.row[item]) ?? []).map((row) => correspondence.stateOf("nodes", row)));
    codes[item] = together(inside);
    if (codes[item] >= 0 && tree.kind[item] === KINDS.node) counts[codes[item]] += 1;
  }
  return { categories: CATEGORIES, codes, counts };
}

/** Returns the rows of parameters, buffers and constants right in each part, which may be hidden. @param {import("../data/data.js").Data} data */
function valuesIn({ nodes, parts }) {
  const isValue = nodes.texts.kind.values.map((kind) => VALUES.has(kind));
  /** @type {Map<number, number[]>} */
  const rowsByPart = new Map();
  idsOf(nodes.numbers.part_id, parts.count).forEach((part, row) => {
    if (part < 0 || !isValue[nodes.texts.kind.codes[row]]) return;
    const rows = rowsByPart.get(part);
    if (rows) rows.push(row);
    else rowsByPart.set(part, [row]);
  });
  return rowsByPart;
}

/** Returns the state that all compared items share, else mixed. @param {number[]} states */
function together(states) {
  const different = new Set(states.filter((state) => state >= 0));
  return different.size > 1 ? STATES.mixed : ([...different][0] ?? -1);
}
