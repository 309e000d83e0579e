// The detail of a compared tensor as raw data, and why there are no values of it.

import { textAt } from "../columns/columns.js";
import { cell } from "./answers.js";

const LEFT_OUT = "The values of this tensor are not in this report; write it with values=True to have them.";

/** @param {any} state @param {number} row */
export function diffDetail(state, row) {
  const values = state.captured.values[String(row)];
  const isSaid = (/** @type {string} */ name) => !state.counts.includes(name) || state.numbers[name][row] !== 0;
  return {
    row,
    op_id: state.numbers.op_id[row],
    op: cell(state, "op", row),
    // That there is no NaN and no Inf need not be said four times.
    fields: [...state.fields, "source"].filter(isSaid).map((name) => [name, cell(state, name, row)]),
    why_not: values ? null : whyNot(state, row),
    plots: values?.plots ?? [],
    worst: values?.worst ?? null,
  };
}

/** @param {any} state @param {number} row */
function whyNot(state, row) {
  const { captured, numbers } = state;
  if (captured.rows.includes(row)) return LEFT_OUT;
  const opId = numbers.op_id[row];
  if (captured.ops.includes(opId)) return "The values of this tensor were not captured: others of its op mismatched, and it did not.";
  return `The values of this tensor were not captured: ${reason(state, opId)}.`;
}

/** As nbkit/trace/captured_calls.py has it. @param {any} state @param {number} opId */
function reason({ captured: { meta, ops }, overview: { harmless }, count, texts, numbers }, opId) {
  if (!meta) return "only nbkit.opdiff keeps values";
  if (!ops.length && meta.calls) return "the trace was saved without its values; save it with values='captured'";
  const why = meta.not_captured[String(opId)];
  if (why) return why.includes("keep_bytes") ? `${why}; a larger keep_bytes makes room` : why;
  const rows = [];
  for (let row = 0; row < count; row += 1) if (numbers.op_id[row] === opId) rows.push(row);
  const { status, op, message } = texts;
  if (rows.every((row) => harmless.includes(textAt(status, row)))) {
    return `it is not a mismatch; record with keep_ops='${textAt(op, rows[0])}' to keep calls of this op all the same`;
  }
  if (rows.some((row) => textAt(message, row)?.startsWith("random"))) return "random ops draw other numbers when they run again";
  return `the first ${meta.keep} mismatched calls are captured; record with a larger keep= for more`;
}
