// The detail of an op, as nbkit/views/op_table/detail.py makes it.

import { count, general, whole } from "../../shared/numbers.js";
import { dataSize, duration, flops } from "../../shared/units.js";
import { textAt } from "../columns/columns.js";
import { backwardOps, forwardOps, neighbours, withChildren } from "./dataflow.js";
import { rowsWhere, statisticsCounts } from "./tensors.js";
import { ROOT, shown } from "../columns/words.js";

const NAME = 2000;
const TEXT = 500;
/** @type {[string, string][]} */
const COUNTS = [["NaN", "nan_count"], ["Inf", "inf_count"]];

/** @type {Record<string, (table: any, column: string, opId: number) => string | null>} */
const LOOKS = {
  text: ({ columns }, column, opId) => text(columns.texts[column], opId),
  module: ({ columns }, column, opId) => text(columns.texts[column], opId) || (columns.texts[column].codes[opId] < 0 ? null : ROOT),
  class: ({ columns, types }, _, opId) => types.get(moduleKey(columns.texts, opId)) ?? null,
  whole: ({ columns }, column, opId) => known(columns.numbers[column][opId], whole),
  time: ({ columns }, column, opId) => duration(columns.numbers[column][opId]),
  "known time": ({ columns }, column, opId) => known(columns.numbers[column][opId], duration),
  flops: ({ columns }, column, opId) => known(columns.numbers[column][opId], flops),
  size: ({ columns }, column, opId) => known(columns.numbers[column][opId], dataSize),
};

/** Types of modules by model and module. @param {any[][]} rows of the module tree */
export function typesOf(rows) {
  return new Map(rows.map(([model, module, , type]) => [`${model}\n${module}`, type]));
}

/** @param {{columns: any, tensors: import("./tensors.js").Tensors, types: Map<string, string | null>, rules: any}} table @param {number} opId */
export function opDetail(table, opId) {
  const { columns, tensors, rules } = table;
  const { parent_id: parent, forward_op_id: forward } = columns.numbers;
  const group = withChildren(parent, opId);
  const { producers, consumers } = neighbours(tensors, group);
  const links = (/** @type {string} */ title, /** @type {number[]} */ ids) => linkList(columns.texts.op, rules.links, title, ids);
  return {
    op_id: opId,
    op: text(columns.texts.op, opId, NAME) ?? "nan",
    fields: [
      ...rules.fields.map((/** @type {string[]} */ [label, column, look]) => [label, LOOKS[look](table, column, opId)]),
      ...leftOut(tensors, group),
    ],
    tensors: tensorTable(tensors, group, rules),
    links: [
      links("Called by", Number.isNaN(parent[opId]) ? [] : [parent[opId]]),
      links("Calls", [...group].filter((id) => id !== opId)),
      links("Inputs come from", producers),
      links("Outputs go to", consumers),
      links("Gradient of", forwardOps(forward, group)),
      links("Gradient computed by", backwardOps(forward, group)),
    ],
  };
}

/** @param {import("./tensors.js").Tensors} tensors @param {Set<number>} group @param {any} rules */
function tensorTable(tensors, group, rules) {
  const near = rowsWhere(tensors.count, (row) => group.has(tensors.op_id[row]));
  const few = near.slice(0, rules.tensors);
  /** @type {[string, (row: number) => string | null][]} */
  const columns = [
    ...(group.size > 1 ? /** @type {any} */ ([["op", (/** @type {number} */ row) => whole(tensors.op_id[row])]]) : []),
    ...rules.texts.map((/** @type {string} */ name) => [name, (/** @type {number} */ row) => text(tensors.texts[name], row)]),
    ["size", (row) => known(tensors.size_bytes[row], dataSize)],
    ["grad", (row) => (tensors.requires_grad[row] ? "yes" : "no")],
    ["tensor", (row) => whole(tensors.tensor_id[row])],
  ];
  const value = tensors.statistic;
  if (few.some((row) => !Number.isNaN(value("nan_count", row)))) {
    for (const name of rules.statistics) columns.push([name, (row) => known(value(name, row), (one) => general(one, 4))]);
    for (const [name, column] of COUNTS) columns.push([name, (row) => known(value(column, row), whole)]);
  }
  return { columns: columns.map(([name]) => name), rows: few.map((row) => columns.map(([, cell]) => cell(row))), total: near.length };
}

/** A field that says that statistics are left out, if they are. @param {import("./tensors.js").Tensors} tensors @param {Set<number>} group */
function leftOut(tensors, group) {
  if (!rowsWhere(tensors.count, (row) => tensors.isLeftOut(row) && group.has(tensors.op_id[row])).length) return [];
  const [kept, all] = statisticsCounts(tensors);
  return [["statistics", `this report has those of ${count(kept)} of ${count(all)} tensors, the notebook has all`]];
}

/** Links to ops, each once, in the order given. @param {import("../columns/columns.js").TextColumn} names @param {number} most @param {string} title @param {number[]} ids */
function linkList(names, most, title, ids) {
  const different = [...new Set(ids)];
  return { title, links: different.slice(0, most).map((id) => [id, shown(textAt(names, id) ?? "nan")]), total: different.length };
}

/** @param {Record<string, import("../columns/columns.js").TextColumn>} texts @param {number} opId */
function moduleKey({ model, module }, opId) {
  const [root, path] = [textAt(model, opId), textAt(module, opId)];
  return root === null || path === null ? "" : `${root}\n${path}`;
}

/** @param {import("../columns/columns.js").TextColumn} column @param {number} row @param {number} [limit] */
function text(column, row, limit = TEXT) {
  const found = textAt(column, row);
  return found === null ? null : shown(found, limit);
}

/** @param {number} value @param {(value: number) => string} textOf */
function known(value, textOf) {
  return Number.isNaN(value) ? null : textOf(value);
}
