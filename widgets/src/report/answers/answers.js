// Answers a table's questions in an exported page, with raw cells as nbkit/views/tables/source.py sends them in the notebook.

import { lister } from "../execute/listing.js";
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
  const list = lister(columns, shown, table.within);
  /** @type {Record<string, (message: any) => object>} */
  const kinds = {
    rows({ query = {}, offset = 0, limit }) {
      const listing = list(query);
      const { matched, names, ids, groups } = listing;
      const bars = groups ? largest(groups.columns.numbers[table.bar] ?? [], groups.first.keys()) : largest(numberColumn(columns, table.bar), matched);
      return {
        matched: matched.length, listed: ids.length, groups: groups && groups.first.length, amount: sum(amounts, matched), columns: names, errors: {}, offset,
        largest: bars, rows: pageRows(table, listing, ids.subarray(offset, offset + (limit ?? ids.length))),
      };
    },
    profile({ query = {} }) {
      const { matched, names, groups } = list(query);
      return { columns: groups ? profiles(groups.columns, Int32Array.from(groups.first.keys()), names) : profiles(columns, matched, names) };
    },
    position({ query = {}, [key]: row }) {
      const { matched, ids, groups } = list(query);
      const position = ids.indexOf(row);
      const group = position < 0 && matched.includes(row) ? groups?.groupOf.get(groups.keys[row]) : undefined;
      return { [key]: row, position: position < 0 ? null : position, closed: group === undefined ? null : groups?.first[group] };
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

/** Returns for each listed row its number, how deep it is nested, and its cells; the number of a group is below 0. @param {Table} table @param {import("../execute/listing.js").Listing} listing @param {Int32Array} ids */
function pageRows({ columns, depth }, { names, groups }, ids) {
  const placeOf = groups && new Map(Array.from(groups.first, (row, place) => [row, place]));
  return Array.from(ids, (id) => {
    const place = id < 0 ? placeOf?.get(-1 - id) ?? -1 : id;
    const from = id < 0 && groups ? groups.columns : columns;
    const deep = id < 0 ? 0 : groups ? 1 : depth?.[id] ?? 0;
    return [id, deep, ...names.map((name) => (hasColumn(from, name) ? cell(from, name, place) : null))];
  });
}

/** @param {import("../columns/columns.js").Columns} columns @param {string} name */
function hasColumn({ texts, numbers }, name) {
  return Object.hasOwn(texts, name) || Object.hasOwn(numbers, name);
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

/** Returns the largest finite value, 0 if there is none above. @param {ArrayLike<number>} values @param {Iterable<number>} rows */
function largest(values, rows) {
  let most = 0;
  for (const row of rows) if (values[row] > most && values[row] < Infinity) most = values[row];
  return most;
}
