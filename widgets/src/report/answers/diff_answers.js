// The diff table's questions answered in an exported page.

import { answerer } from "./answers.js";
import { diffDetail } from "./diff_detail.js";

/** Returns a function that answers questions. @param {any} state of unpack() */
export function diffAnswers(state) {
  const { count, texts, numbers, overview: { harmless } } = state;
  const isWrong = texts.status.values.map((/** @type {string} */ text) => Number(!harmless.includes(text)));
  return answerer({
    noun: "row", key: "row", bar: "noise_ratio", columns: { count, texts, numbers }, shown: state.columns, modules: state.modules,
    amounts: Float64Array.from(texts.status.codes, (code) => isWrong[code] ?? 0),
    within: () => null, kinds: { detail: (row) => diffDetail(state, row), script: (row) => script(state, row) },
  });
}

/** Returns the script that runs the op of a row alone. @param {any} state @param {number} row */
function script({ captured }, row) {
  const values = captured.values[String(row)];
  if (!values) throw new Error("The script needs the inputs of the op, which are not in this report.");
  if (values.script === null) throw new Error("The inputs of this op are too large for a script; copy it in the notebook.");
  return { script: values.script, note: null };
}
