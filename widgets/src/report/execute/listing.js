// What a table lists for a query, rows or groups of them, and of the last queries what was made; nbkit/analysis/query/listing.py is the kernel's.

import { maskOf } from "./fits.js";
import { textColumn } from "../columns/columns.js";
import { columnsOf, groupsOf, having, listing, opened } from "./groups.js";
import { ordered } from "./order.js";

/**
 * `ids` are rows, or -1 less the first row of a group; `names` are the columns to show.
 * @typedef {import("../columns/columns.js").Columns} Columns
 * @typedef {{matched: Int32Array, names: string[], ids: Int32Array, groups: import("./groups.js").Groups | null}} Listing
 * @typedef {{predicates?: any[], sort?: {column: string, descending?: boolean}[], group?: import("../../table/query/grouping.js").Grouping | null}} Query
 */

/** Returns a function that lists what a query asks for. @param {Columns} columns @param {string[]} shown @param {() => Iterable<number> | null} within the rows that the table is limited to, or null @returns {(query: Query) => Listing} */
export function lister(columns, shown, within) {
  const closed = remembered((/** @type {Query} */ query, /** @type {Iterable<number> | null} */ limit) => closedListing(columns, shown, query, limit));
  return remembered((/** @type {Query} */ query) => {
    const { open = [], ...group } = query.group ?? {};
    const found = closed({ ...query, group: query.group ? group : null }, within());
    const rows = open.filter((row) => row >= 0 && row < columns.count);
    if (!found.groups || !rows.length) return found;
    const known = (query.sort ?? []).filter(({ column }) => Object.hasOwn(columns.texts, column) || Object.hasOwn(columns.numbers, column));
    return { ...found, ids: listing(found.groups, opened(found.groups, rows), (inside) => ordered(columns, inside, known)) };
  }, within);
}

/** @param {Columns} columns @param {string[]} shown @param {any} query @param {Iterable<number> | null} limit @returns {Listing} */
function closedListing(columns, shown, { predicates = [], sort = [], group }, limit) {
  const names = group ? columnsOf(shown, columns, group) : shown;
  const numbers = group ? names.filter((name) => !textColumn(columns, name)) : [];
  const [ofGroups, ofRows] = [true, false].map((wanted) => predicates.filter((/** @type {any} */ one) => having(numbers, one) === wanted));
  const rows = rowsOf(limited(maskOf(columns, ofRows), limit));
  if (!group) {
    const matched = ordered(columns, rows, sort);
    return { matched, names, ids: matched, groups: null };
  }
  const groups = groupsOf(columns, rows, group, names, sort, ofGroups);
  return { matched: groups.rows.slice().sort(), names, ids: groups.first.map((row) => -1 - row), groups };
}

/** Keeps the result of the last question. @template T @param {(query: any, limit: Iterable<number> | null) => T} make @param {() => Iterable<number> | null} [within] @returns {(query: any, limit?: Iterable<number> | null) => T} */
function remembered(make, within) {
  /** @type {{text: string, limit: Iterable<number> | null, result: T} | null} */
  let last = null;
  return (query, limit = within?.() ?? null) => {
    const text = JSON.stringify(query);
    if (!last || text !== last.text || limit !== last.limit) last = { text, limit, result: make(query, limit) };
    return last.result;
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
