// The detail of a compared tensor, as nbkit/views/diff_table/detail.py makes it, and why there are no values of it.

import { general, whole } from "../../shared/numbers.js";
import { textAt, textColumn } from "../columns/columns.js";
import { ROOT, quoted, shown } from "../columns/words.js";

const LONG = 2000;
const LEFT_OUT = "The values of this tensor are not in this report; write it with values=True to have them.";

/** @param {any} state @param {any} columns @param {number} row */
export function diffDetail(state, columns, row) {
  const opId = columns.numbers.op_id[row];
  const values = state.captured.values[String(row)];
  return {
    row,
    op_id: opId,
    op: text(columns, "op", row) ?? "nan",
    fields: [...state.fields, "source"].filter((name) => isTold(state, columns, name, row)).map((name) => [name.replaceAll("_", " "), text(columns, name, row, state.whole)]),
    why_not: values ? null : whyNot(state, columns, row),
    plots: values?.plots ?? [],
    worst: values?.worst ?? null,
  };
}

/** A metric for the eye. @param {number} value */
export function metric(value) {
  return value === 0 ? "0" : general(value, 3);
}

/** That there is no NaN and no Inf need not be said four times. @param {any} state @param {any} columns @param {string} name @param {number} row */
function isTold(state, columns, name, row) {
  return !state.counts.includes(name) || columns.numbers[name][row] !== 0;
}

/** @param {any} columns @param {string} name @param {number} row @param {string[]} [wholes] columns of whole numbers */
function text(columns, name, row, wholes = []) {
  const texts = textColumn(columns, name);
  if (texts) {
    const found = textAt(texts, row);
    return found === null ? null : name === "module" && found === "" ? ROOT : shown(found, LONG);
  }
  const value = columns.numbers[name][row];
  return Number.isNaN(value) ? null : wholes.includes(name) ? whole(value) : metric(value);
}

/** @param {any} state @param {any} columns @param {number} row */
function whyNot({ captured, harmless }, columns, row) {
  if (captured.rows.includes(row)) return LEFT_OUT;
  const opId = columns.numbers.op_id[row];
  if (captured.ops.includes(opId)) return "The values of this tensor were not captured: others of its op were wrong, and it was not.";
  return `The values of this tensor were not captured: ${reason(captured, harmless, columns, opId)}.`;
}

/** As nbkit/trace/captured_calls.py has it. @param {any} captured @param {string[]} harmless @param {any} columns @param {number} opId */
function reason({ meta, ops }, harmless, columns, opId) {
  if (!meta) return "only nbkit.opdiff keeps values";
  if (!ops.length && meta.calls) return "the trace was saved without its values; save it with values='captured'";
  const said = meta.not_captured[String(opId)];
  if (said) return said.includes("keep_bytes") ? `${said}; a larger keep_bytes makes room` : said;
  const rows = [];
  for (let row = 0; row < columns.count; row += 1) if (columns.numbers.op_id[row] === opId) rows.push(row);
  const { status, op, message } = columns.texts;
  if (rows.every((row) => harmless.includes(textAt(status, row) ?? ""))) {
    const name = textAt(op, rows[0]);
    return `it is not a mismatch; record with keep_ops=${name === null ? "nan" : quoted(name)} to keep calls of this op all the same`;
  }
  if (rows.some((row) => textAt(message, row)?.startsWith("random"))) return "random ops draw other numbers when they run again";
  return `the first ${meta.keep} wrong calls are captured; record with a larger keep= for more`;
}
