// The op table's questions answered in an exported page.

import { isDevice, opColumns } from "../columns/op_columns.js";
import { answerer } from "./answers.js";
import { opDetail, typesOf } from "./op_detail.js";
import { tensorColumns } from "./tensors.js";

/** Returns a function that answers questions. `state.within`, if it is set, holds the ids of the ops that the table is limited to. @param {any} state of unpack() */
export function opAnswers(state) {
  const columns = opColumns(state);
  const bar = state.overview.cost?.bar ?? "self_time_us";
  const isBeside = isDevice(columns.texts.level);
  /** @type {any} what details need and rows do not */
  let known;
  const detail = (/** @type {number} */ id) => {
    known ??= { columns, tensors: tensorColumns(state.tensors), types: typesOf(state.modules.rows), most: state.detail };
    return opDetail(known, id);
  };
  return answerer({
    noun: "op", key: "op_id", bar, columns, shown: state.columns, modules: state.modules, depth: columns.depth,
    // Work on a device runs beside the host.
    amounts: columns.numbers[bar].map((amount, row) => (isBeside[row] ? 0 : amount || 0)),
    within: () => state.within ?? null, kinds: { detail },
  });
}
