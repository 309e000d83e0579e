// The op table's questions answered in an exported page, as nbkit/views/op_table/source.py answers them in the notebook.

import { roundedTo } from "../../shared/numbers.js";
import { everything } from "../../op_table/query.js";
import { duration } from "../../shared/units.js";
import { answerer, knownId, modulePage, pageOf, remembered, withinBytes } from "./answers.js";
import { opCell } from "../columns/cells.js";
import { keepChoice, rowsOf, wantedRows, wholeQuery } from "../filter/matches.js";
import { isDevice, opColumns } from "../columns/op_columns.js";
import { opDetail, typesOf } from "./op_detail.js";
import { ordered } from "../columns/order.js";
import { tensorColumns } from "./tensors.js";

/** Place of the bar among the numbers of a row. */
const BAR = 2;

/**
 * From a question to its answer. `state.within`, if it is set, holds the ids of the ops that the table is limited to.
 * @param {any} state of unpack()
 * @returns {(message: any) => any}
 */
export function opAnswers(state) {
  const columns = opColumns(state);
  const isBeside = isDevice(columns.texts.level);
  /** @type {any} what details need and rows do not */
  let known;
  const detail = (/** @type {number} */ id) => {
    known ??= { columns, tensors: tensorColumns(state.tensors), types: typesOf(state.modules.rows), rules: state.detail };
    return opDetail(known, id);
  };
  const matchesOf = matcher(state, columns);
  const idOf = (/** @type {any} */ message) => knownId(message.op_id, columns.count, "op");
  return answerer(state.table, {
    rows(message) {
      const { ids, errors } = matchesOf(message);
      const [start, end] = pageOf(message, state.pages.rows);
      const rows = Array.from(ids.subarray(start, end), (id) => row(state, columns, id));
      const selfTime = duration(hostTime(columns.numbers.self_time_us, isBeside, ids));
      return { matched: ids.length, self_time: selfTime, columns: state.columns, errors, offset: start, rows: withinBytes(rows, state.pages.bytes, BAR) };
    },
    detail: (message) => detail(idOf(message)),
    modules: (message) => modulePage(state, message),
    position(message) {
      const id = idOf(message);
      const place = matchesOf(message).ids.indexOf(id);
      return { op_id: id, position: place < 0 ? null : place };
    },
  });
}

/** From a message to the ids that its query asks for; those of the last few queries are kept. @param {any} state @param {import("../columns/columns.js").Columns} columns */
function matcher(state, columns) {
  /** @type {any} */
  let within = null;
  const renewed = () => remembered((text) => matches(columns, JSON.parse(text), within));
  let find = renewed();
  return (/** @type {any} */ { query = {} }) => {
    if ((state.within ?? null) !== within) {
      within = state.within ?? null;
      find = renewed();
    }
    return find(JSON.stringify(query));
  };
}

/** @param {import("../columns/columns.js").Columns} columns @param {object} query @param {Iterable<number> | null} within */
function matches(columns, query, within) {
  const wanted = wholeQuery(query, everything(), "OpQuery");
  const { mask, errors } = wantedRows(columns, wanted);
  if (within) {
    const isInside = new Uint8Array(mask.length);
    for (const id of within) isInside[id] = 1;
    for (let id = 0; id < mask.length; id += 1) mask[id] &= isInside[id];
  }
  keepChoice(columns, mask, "level", wanted.level);
  keepChoice(columns, mask, "phase", wanted.phase);
  return { ids: ordered(columns, rowsOf(mask), wanted.sort, wanted.is_descending), errors };
}

/** Id, depth, self time as a fraction of the slowest of its level, cells. @param {any} state @param {any} columns @param {number} id */
function row(state, columns, id) {
  const bar = roundedTo(columns.numbers.self_time_us[id] / state.slowest.at(columns.texts.level.codes[id]), 4);
  const cells = state.columns.map((/** @type {string} */ name) => opCell(columns, state.formats, id, name));
  return [id, columns.depth[id], Number.isNaN(bar) ? null : bar, ...cells];
}

/** Self time of the ops that are not work on a device. @param {Float64Array} selfTime @param {Uint8Array} isBeside @param {Int32Array} ids */
function hostTime(selfTime, isBeside, ids) {
  let nanoseconds = 0;
  // Whole numbers add up without rounding.
  for (const id of ids) if (!isBeside[id] && !Number.isNaN(selfTime[id])) nanoseconds += Math.round(selfTime[id] * 1000);
  return nanoseconds / 1000;
}
