// Which rows of a table a query asks for, as nbkit/analysis/query/op_table.py and diff_table.py have it.

import { keepAnyText, keepNumbers, keepTexts, numberColumn, textColumn } from "../columns/columns.js";
import { PatternError } from "../columns/errors.js";
import { contains, numberTest, textTest } from "./filters.js";
import { stripped, words } from "../columns/words.js";

const SEARCHED = ["op", "module", "source"];

/** A query with what it leaves out taken from `defaults`. Raises TypeError on a name that is none. @param {object} given @param {object} defaults @param {string} name @returns {any} */
export function wholeQuery(given, defaults, name) {
  const unknown = Object.keys(given).find((key) => !Object.hasOwn(defaults, key));
  if (unknown !== undefined) throw new TypeError(`${name}.__init__() got an unexpected keyword argument '${unknown}'`);
  return { ...defaults, ...given };
}

/**
 * Per row whether it fits search, filters and module, and the message of each filter that could not be used.
 * @param {import("../columns/columns.js").Columns} table
 * @param {any} wanted
 * @returns {{mask: Uint8Array, errors: Record<string, string>}}
 */
export function wantedRows(table, wanted) {
  const mask = new Uint8Array(table.count).fill(1);
  /** @type {Record<string, string>} */
  const errors = {};
  for (const [column, text] of Object.entries(wanted.filters)) {
    if (stripped(/** @type {string} */ (text))) Object.assign(errors, keepColumn(table, mask, column, /** @type {string} */ (text)));
  }
  for (const word of words(wanted.search)) keepAnyText(mask, SEARCHED.map((name) => table.texts[name]), contains(word));
  if (wanted.outside_modules) keepTexts(mask, table.texts.module, (text) => text === null);
  else if (wanted.module !== null) keepModule(table, mask, wanted);
  return { mask, errors };
}

/** Takes rows out whose column is not exactly this text; none for "". @param {import("../columns/columns.js").Columns} table @param {Uint8Array} mask @param {string} column @param {string} text */
export function keepChoice(table, mask, column, text) {
  if (text) keepFitting(table, mask, column, `=${text}`);
}

/** The rows of a mask. @param {Uint8Array} mask */
export function rowsOf(mask) {
  let count = 0;
  const rows = new Int32Array(mask.length);
  for (let row = 0; row < mask.length; row += 1) if (mask[row]) rows[count++] = row;
  return rows.slice(0, count);
}

/** The message if the filter cannot be used, by its column. @param {import("../columns/columns.js").Columns} table @param {Uint8Array} mask @param {string} column @param {string} text @returns {Record<string, string>} */
function keepColumn(table, mask, column, text) {
  try {
    keepFitting(table, mask, column, text);
    return {};
  } catch (error) {
    if (error instanceof PatternError) return { [column]: error.message };
    throw error;
  }
}

/** @param {import("../columns/columns.js").Columns} table @param {Uint8Array} mask @param {string} column @param {string} text */
function keepFitting(table, mask, column, text) {
  const texts = textColumn(table, column);
  if (texts) keepTexts(mask, texts, textTest(text));
  else keepNumbers(mask, numberColumn(table, column), numberTest(text, column.endsWith("_us")));
}

/** @param {import("../columns/columns.js").Columns} table @param {Uint8Array} mask @param {{model: string | null, module: string}} wanted */
function keepModule({ texts }, mask, { model, module }) {
  keepTexts(mask, texts.module, (path) => path !== null && (!module || path === module || path.startsWith(`${module}.`)));
  if (model !== null) keepTexts(mask, texts.model, (name) => name === model);
}
