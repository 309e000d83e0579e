// Answers a table's questions in an exported page, with raw cells as nbkit/views/tables/source.py sends them in the notebook.

import { maskOf } from "../execute/fits.js";
import { ordered } from "../execute/order.js";
import { profiles } from "../execute/profile.js";
import { numberColumn, textAt, textColumn } from "../columns/columns.js";

/**
 * A table: what it is called, its rows, and what is made of them. `key` is the name of a row's number in messages, `bar` the
 * column that has bars, `amounts` what is added up; `within()` gives the rows that the table is limited to, or null.
 *
 * @typedef {{noun: string, key: string, bar: string, columns: import("../columns/columns.js").Columns, shown: string[], modules: any,
 *   amounts: ArrayLike<number>, depth?: ArrayLike<number>, within: () => Iterable<number> | null, kinds: Record<string, (row: number) => object>}} Table
 */

/** Returns a function that answers messages of the front end, with kind "error" where they ask for what is not there. @param {Table} table @returns {(message: any) => any} */
export function answerer(table) {
  const { columns, key, shown, amounts } = table;
  const idsOf = matcher(table);
  /** @type {Record<string, (message: any) => object>} */
  const kinds = {
    rows(message) {
      const ids = idsOf(message);
      const { offset = 0, limit = ids.length } = message;
      const rows = Array.from(ids.subarray(offset, offset + limit), (row) => [row, table.depth?.[row] ?? 0, ...shown.map((name) => cell(columns, name, row))]);
      return { matched: ids.length, amount: sum(amounts, ids), columns: shown, errors: {}, offset, largest: largest(numberColumn(columns, table.bar), ids), rows };
    },
    profile: (message) => ({ columns: profiles(columns, idsOf(message), shown) }),
    position(message) {
      const position = idsOf(message).indexOf(message[key]);
      return { [key]: message[key], position: position < 0 ? null : position };
    },
    modules: () => table.modules,
  };
  return (message) => {
    const { kind, id } = message;
    try {
      if (Object.hasOwn(kinds, kind)) return { kind, id, ...kinds[kind](message) };
      const row = message[key];
      if (!(row >= 0 && row < columns.count)) throw new Error(`There is no ${table.noun} ${row}; the last one is ${columns.count - 1}.`);
      return { kind, id, ...table.kinds[kind](row) };
    } catch (error) {
      return { kind: "error", id, message: /** @type {Error} */ (error).message };
    }
  };
}

/** Returns a function that finds the rows a message's query asks for, and keeps those of the last query. @param {Table} table */
function matcher({ columns, within }) {
  /** @type {{text: string, limit: Iterable<number> | null, ids: Int32Array}} */
  let last = { text: "", limit: null, ids: new Int32Array(0) };
  return (/** @type {any} */ { query = {} }) => {
    const text = JSON.stringify(query);
    const limit = within();
    if (text !== last.text || limit !== last.limit) {
      const { predicates = [], sort = [] } = query;
      last = { text, limit, ids: ordered(columns, rowsOf(limited(maskOf(columns, predicates), limit)), sort) };
    }
    return last.ids;
  };
}

/** @param {Uint8Array} mask @param {Iterable<number> | null} limit */
function limited(mask, limit) {
  if (!limit) return mask;
  const inside = new Uint8Array(mask.length);
  for (const row of limit) inside[row] = mask[row];
  return inside;
}

/** @param {Uint8Array} mask */
function rowsOf(mask) {
  let count = 0;
  const rows = new Int32Array(mask.length);
  for (let row = 0; row < mask.length; row += 1) if (mask[row]) rows[count++] = row;
  return rows.slice(0, count);
}

/** Returns a cell as raw data; null where the value is missing. @param {import("../columns/columns.js").Columns} columns @param {string} name @param {number} row */
export function cell(columns, name, row) {
  const texts = textColumn(columns, name);
  if (texts) return textAt(texts, row);
  const value = columns.numbers[name][row];
  return Number.isNaN(value) ? null : value;
}

/** @param {ArrayLike<number>} values @param {Int32Array} rows */
function sum(values, rows) {
  let total = 0;
  for (const row of rows) total += values[row] || 0;
  return total;
}

/** Returns the largest finite value, 0 if there is none above. @param {Float64Array} values @param {Int32Array} rows */
function largest(values, rows) {
  let most = 0;
  for (const row of rows) if (values[row] > most && values[row] < Infinity) most = values[row];
  return most;
}
