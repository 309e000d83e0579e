// The detail of an op as raw data, as nbkit/views/op_table/detail.py makes it.

import { count } from "../../shared/numbers.js";
import { textAt } from "../columns/columns.js";
import { cell } from "./answers.js";
import { backwardOps, forwardOps, neighbors, withChildren } from "./dataflow.js";
import { rowsWhere, statisticsCounts } from "./tensors.js";

/** Columns that the ops do not have themselves, as nbkit/analysis/query/op_table.py makes them. */
/** Columns of which only groups are made. */
const OF_GROUPS = /^run_|^(forward|backward|median)_us$/;
const MADE = ["output", "location", "layer", "source_text"];
const TENSOR_TEXTS = ["role", "name", "dtype", "shape", "stride", "device"];
const STATISTICS = ["mean", "std", "min", "max", "norm", "nan_count", "inf_count"];

/** Types of modules by model and module. @param {any[][]} rows of the module tree */
export function typesOf(rows) {
  return new Map(rows.map(([model, module, type]) => [`${model}\n${module}`, type]));
}

/** @param {{columns: any, tensors: import("./tensors.js").Tensors, types: Map<string, string | null>, most: {links: number, tensors: number}}} table @param {number} opId */
export function opDetail({ columns, tensors, types, most }, opId) {
  const { parent_id: parent, forward_op_id: forward } = columns.numbers;
  const group = withChildren(parent, opId);
  const { producers, consumers } = neighbors(tensors, group);
  const links = (/** @type {number[]} */ ids) => linkList(columns.texts.op, most.links, ids);
  const values = (/** @type {string} */ name) => cell(columns, name, opId);
  return {
    op_id: opId,
    op: values("op"),
    fields: Object.fromEntries([...Object.keys(columns.texts), ...Object.keys(columns.numbers)].filter((name) => !MADE.includes(name) && !OF_GROUPS.test(name)).map((name) => [name, values(name)])),
    source_text: values("source_text"),
    class: types.get(`${values("model")}\n${values("module")}`) ?? null,
    left_out: leftOut(tensors, group),
    tensors: tensorRows(tensors, group, most.tensors),
    links: {
      called_by: links(Number.isNaN(parent[opId]) ? [] : [parent[opId]]),
      calls: links([...group].filter((id) => id !== opId)),
      producers: links(producers),
      consumers: links(consumers),
      forward: links(forwardOps(forward, group)),
      backward: links(backwardOps(forward, group)),
    },
  };
}

/** @param {import("./tensors.js").Tensors} tensors @param {Set<number>} group @param {number} most */
function tensorRows(tensors, group, most) {
  const near = rowsWhere(tensors.count, (row) => group.has(tensors.op_id[row]));
  const few = near.slice(0, most);
  const known = (/** @type {number} */ value) => (Number.isNaN(value) ? null : value);
  /** @type {[string, (row: number) => any][]} */
  const columns = TENSOR_TEXTS.map((name) => [name, (row) => textAt(tensors.texts[name], row)]);
  columns.push(["size_bytes", (row) => known(tensors.size_bytes[row])], ["requires_grad", (row) => tensors.requires_grad[row]]);
  columns.push(["tensor_id", (row) => tensors.tensor_id[row]]);
  if (group.size > 1) columns.unshift(["op_id", (row) => tensors.op_id[row]]);
  if (few.some((row) => !Number.isNaN(tensors.statistic("nan_count", row)))) {
    for (const name of STATISTICS) columns.push([name, (row) => known(tensors.statistic(name, row))]);
  }
  return { columns: columns.map(([name]) => name), rows: few.map((row) => columns.map(([, value]) => value(row))), total: near.length };
}

/** Says that statistics are left out, if they are. @param {import("./tensors.js").Tensors} tensors @param {Set<number>} group */
function leftOut(tensors, group) {
  if (!rowsWhere(tensors.count, (row) => tensors.isLeftOut(row) && group.has(tensors.op_id[row])).length) return null;
  const [kept, all] = statisticsCounts(tensors);
  return `this report has those of ${count(kept)} of ${count(all)} tensors, the notebook has all`;
}

/** Returns the links to ops, each once, in the order given. @param {import("../columns/columns.js").TextColumn} names @param {number} most @param {number[]} ids */
function linkList(names, most, ids) {
  const different = [...new Set(ids)];
  return { links: different.slice(0, most).map((id) => [id, textAt(names, id)]), total: different.length };
}
