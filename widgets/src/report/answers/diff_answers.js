// The diff table's questions answered in an exported page, as nbkit/views/diff_table/source.py answers them in the notebook.

import { everything } from "../../diff_table/query.js";
import { count, whole } from "../../shared/numbers.js";
import { answerer, knownId, modulePage, pageOf, remembered, withinBytes } from "./answers.js";
import { textCell } from "../columns/cells.js";
import { keepNumbers, numberColumn, textColumn } from "../columns/columns.js";
import { diffColumns } from "../columns/diff_columns.js";
import { diffDetail, metric } from "./diff_detail.js";
import { OptionError } from "../columns/errors.js";
import { keepChoice, rowsOf, wantedRows, wholeQuery } from "../filter/matches.js";
import { ordered } from "../columns/order.js";

/** Place of the bar among the numbers of a row. */
const BAR = 2;

/** From a question to its answer. @param {any} state of unpack() @returns {(message: any) => any} */
export function diffAnswers(state) {
  const columns = diffColumns(state);
  const find = remembered((text) => matches(columns, JSON.parse(text)));
  const matchesOf = (/** @type {any} */ { query = {} }) => find(JSON.stringify(query));
  const rowOf = (/** @type {any} */ message) => knownId(message.row, columns.count, "row");
  return answerer(state.table, {
    rows(message) {
      const { ids, errors } = matchesOf(message);
      const [start, end] = pageOf(message, state.pages.rows);
      const cells = (/** @type {number} */ row) => state.columns.map((/** @type {string} */ name) => cell(state, columns, row, name));
      const rows = Array.from(ids.subarray(start, end), (row) => [row, 0, columns.bar(row), ...cells(row)]);
      const wrong = ids.reduce((sum, row) => sum + columns.isWrong[row], 0);
      return { matched: ids.length, wrong: count(wrong), columns: state.columns, errors, offset: start, rows: withinBytes(rows, state.pages.bytes, BAR) };
    },
    detail: (message) => diffDetail(state, columns, rowOf(message)),
    modules: (message) => modulePage(state, message),
    position(message) {
      const row = rowOf(message);
      const place = matchesOf(message).ids.indexOf(row);
      return { row, position: place < 0 ? null : place };
    },
    script: (message) => script(state, rowOf(message)),
  });
}

/** @param {any} columns @param {object} query */
function matches(columns, query) {
  const wanted = wholeQuery(query, everything(), "DiffQuery");
  const { mask, errors } = wantedRows(columns, wanted);
  for (const [column, text] of Object.entries(wanted.choices)) keepChoice(columns, mask, column, /** @type {string} */ (text));
  for (const [column, least] of Object.entries(wanted.thresholds)) keepLarge(columns, mask, column, /** @type {number} */ (least));
  return { ids: ordered(columns, rowsOf(mask), wanted.sort, wanted.is_descending), errors };
}

/** Keeps rows whose metric is `least` or more, and bad rows of which it is not known. @param {any} columns @param {Uint8Array} mask @param {string} name @param {number} least */
function keepLarge(columns, mask, name, least) {
  keepNumbers(mask, numberColumn(columns, name), (value, row) => value >= least || (Number.isNaN(value) && Boolean(columns.isWrong[row])));
}

/** One cell as text; null where the value is missing. @param {any} state @param {any} columns @param {number} row @param {string} name */
function cell(state, columns, row, name) {
  const texts = textColumn(columns, name);
  if (texts) return textCell(texts, row, name);
  const value = columns.numbers[name][row];
  if (Number.isNaN(value)) return null;
  // Places are counted from 1.
  return state.whole.includes(name) ? whole(value + Number(name === "rank")) : metric(value);
}

/** The script that runs the op of a row alone. @param {any} state @param {number} row */
function script({ captured }, row) {
  const values = captured.values[String(row)];
  if (!values) throw new OptionError("The script needs the inputs of the op, which are not in this report.");
  if (values.script === null) throw new OptionError("The inputs of this op are too large for a script; copy it in the notebook.");
  return { script: values.script, note: null };
}
