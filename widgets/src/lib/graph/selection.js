// What of a graph is selected, as the model of the widget holds it.

import { numberAt, textAt } from "./data.js";
import { titleOf } from "./words.js";

/** Nothing selected. */
export const NONE = { selected_node_id: null, selected_part_id: null, selected_op_id: null, selection: null };

/**
 * The traits of a selected item: its node or part, the op of a recorded step that a node stands for, and what else it
 * holds of that step: the ids of its ops, else the path of its module.
 * @param {import("./model.js").GraphModel} model @param {number} item -1 for none
 */
export function traitsOf(model, item) {
  if (item < 0) return NONE;
  const { nodes, parts } = model.data;
  const [node, part] = [model.nodeOf(item), model.partOf(item)];
  const ids = model.nodesOf(item).map((row) => nodes.numbers.op_id[row]).filter((id) => id >= 0);
  const module = part === null ? node === null ? null : textAt(nodes.texts.module, node) : textAt(parts.texts.module, part);
  const selection = { label: titleOf(model.data, model.tree, item), ids: new DataView(Int32Array.from(ids).sort().buffer), module };
  const op = node === null ? null : numberAt(nodes.numbers.op_id, node);
  return { selected_node_id: node, selected_part_id: part, selected_op_id: op, selection: op === null ? selection : null };
}

/** The graph and the row that the model has selected; null for none, or one that is not there. @param {import("./data.js").Data} data @param {Record<string, number | null>} traits */
export function askedFor(data, { selected_node_id: node, selected_part_id: part, selected_op_id: op }) {
  if (node !== null && node < data.nodes.count) return { table: "nodes", row: node };
  if (part !== null && part < data.parts.count) return { table: "parts", row: part };
  const row = op === null ? -1 : data.nodes.numbers.op_id.indexOf(op);
  return row < 0 ? null : { table: "nodes", row };
}
