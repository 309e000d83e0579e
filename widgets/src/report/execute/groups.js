// Groups of a table's rows: the report's executor; nbkit/analysis/query/groups.py is the kernel's.

import { numberColumn, textColumn } from "../columns/columns.js";
import { overRuns } from "../columns/runs.js";
import { commonTexts } from "./common_texts.js";
import { maskOf } from "./fits.js";
import { ordered } from "./order.js";
import { spreadOf } from "./spread.js";

/**
 * @typedef {import("../../table/query/grouping.js").Grouping} Grouping
 * @typedef {import("../columns/columns.js").Columns} Columns
 * @typedef {{columns: Columns, first: Int32Array, rows: Int32Array, starts: Int32Array, groupOf: Map<number, number>, keys: Int32Array}} Groups
 * @typedef {{rows: Int32Array, starts: Int32Array, groups: Int32Array}} Parts rows one group after the other: where each starts, and of each row its group
 */

/** Keys up to which a place for each is quicker than a map. */
const PLACES = 1 << 22;
/** @type {Record<string, (total: number, value: number) => number>} */
const TOTALS = { sum: (total, value) => total + value, min: Math.min, max: Math.max };

/** What the columns of the times of single runs begin with. */
const RUN = "run_";

/** Returns the columns that groups are shown with. @param {string[]} shown @param {Columns} columns @param {Grouping} grouping */
export function columnsOf(shown, columns, { by, totals, spread, each = [], among = [], only = [] }) {
  const leading = by.filter((name, index) => index === 0 || shown.includes(name));
  const numbers = shown.filter((name) => Object.hasOwn(totals, name));
  const counts = ["calls", ...(among.length ? ["of"] : []), ...(each.length ? ["instances"] : [])];
  const at = spread === undefined ? 0 : numbers.indexOf(spread) + 1;
  const texts = shown.filter((name) => textColumn(columns, name) && !leading.includes(name));
  const added = only.filter((name) => Object.hasOwn(columns.numbers, name));
  return [...leading, ...counts, ...numbers.slice(0, at), ...added, ...numbers.slice(at), ...(spread ? ["min", "median", "max"] : []), ...texts];
}

/** Tells whether a predicate is about these numbers of groups: it leaves out groups then, as their columns show. @param {string[]} numbers @param {any} predicate @returns {boolean} */
export function having(numbers, { any, all, column }) {
  const parts = any ?? all;
  return parts ? parts.length > 0 && parts.every((/** @type {any} */ part) => having(numbers, part)) : numbers.includes(column);
}

/**
 * Groups these rows, given in the order of the table; groups come in the order of `sort`, else of their first rows.
 * Those that do not fit the predicates are left out, with their rows.
 * @param {Columns} columns @param {Int32Array} ids @param {Grouping} grouping @param {string[]} names columns that the groups need @param {{column: string, descending?: boolean}[]} sort @param {any[]} [predicates]
 * @returns {Groups}
 */
export function groupsOf(columns, ids, grouping, names, sort, predicates = []) {
  const keys = keysOf(columns, grouping.by);
  const { codes, different } = dense(ids.length, (index) => keys[ids[index]]);
  const parts = partsOf(ids, codes, different.length);
  const first = firstRows(parts);
  const made = { count: first.length, ...groupColumns(columns, parts, grouping, names) };
  const known = sort.filter(({ column }) => Object.hasOwn(made.texts, column) || Object.hasOwn(made.numbers, column));
  const fits = maskOf(made, predicates);
  const natural = Int32Array.from(first.keys()).filter((group) => fits[group]).sort((left, right) => first[left] - first[right]);
  return placed(made, parts, first, ordered(made, natural, known), keys);
}

/** Tells which groups are open: those with the keys of these rows, whether a filter leaves the rows or not. @param {Groups} groups @param {number[]} rows @returns {Set<number>} */
export function opened({ keys, groupOf }, rows) {
  const inside = rows.map((row) => groupOf.get(keys[row]));
  return new Set(inside.filter((index) => index !== undefined));
}

/**
 * Returns what a table lists: a group as -1 less its first row, its rows after it if it is open.
 * @param {Groups} groups @param {Set<number>} open @param {(rows: Int32Array) => Int32Array} sorted puts the rows of a group in order
 */
export function listing({ first, rows, starts }, open, sorted) {
  let count = first.length;
  for (const index of open) count += starts[index + 1] - starts[index];
  const listed = new Int32Array(count);
  let at = 0;
  first.forEach((row, index) => {
    listed[at++] = -1 - row;
    if (!open.has(index)) return;
    listed.set(sorted(rows.slice(starts[index], starts[index + 1])), at);
    at += starts[index + 1] - starts[index];
  });
  return listed;
}

/** Returns a number for each row, equal where the texts in these columns are. @param {Columns} columns @param {string[]} names */
export function keysOf(columns, names) {
  /** @type {Int32Array} */
  let keys = new Int32Array(columns.count);
  for (const name of names) {
    const texts = textColumn(columns, name);
    if (!texts) throw new Error(`The table has no texts '${name}' to group by.`);
    const { values: { length }, codes } = texts;
    keys = dense(keys.length, (row) => keys[row] * (length + 1) + codes[row] + 1).codes;
  }
  return keys;
}

/** Numbers different keys from 0, in the order in which they come. @param {number} count @param {(index: number) => number} keyAt @returns {{codes: Int32Array, different: number[]}} */
export function dense(count, keyAt) {
  const codes = new Int32Array(count);
  let most = 0;
  for (let index = 0; index < count; index += 1) most = Math.max(most, keyAt(index));
  /** @type {number[]} */
  const different = [];
  const places = most < PLACES ? new Int32Array(most + 1) : null;
  const known = new Map();
  for (let index = 0; index < count; index += 1) {
    const key = keyAt(index);
    let code = places ? places[key] - 1 : known.get(key) ?? -1;
    if (code < 0) {
      code = different.push(key) - 1;
      if (places) places[key] = code + 1;
      else known.set(key, code);
    }
    codes[index] = code;
  }
  return { codes, different };
}

/** Puts rows one group after the other. @param {Int32Array} ids @param {Int32Array} codes @param {number} count @returns {Parts} */
function partsOf(ids, codes, count) {
  const starts = new Int32Array(count + 1);
  for (const code of codes) starts[code + 1] += 1;
  for (let index = 0; index < count; index += 1) starts[index + 1] += starts[index];
  const next = starts.slice();
  const rows = new Int32Array(ids.length);
  const groups = new Int32Array(ids.length);
  codes.forEach((code, index) => {
    rows[next[code]] = ids[index];
    groups[next[code]++] = code;
  });
  return { rows, starts, groups };
}

/** @param {Parts} parts */
function firstRows({ rows, starts }) {
  const first = new Int32Array(starts.length - 1);
  for (let index = 0; index < first.length; index += 1) {
    let least = rows[starts[index]];
    for (let at = starts[index]; at < starts[index + 1]; at += 1) least = Math.min(least, rows[at]);
    first[index] = least;
  }
  return first;
}

/** @param {Columns} columns @param {Parts} parts @param {Grouping} grouping @param {string[]} names */
function groupColumns(columns, parts, { totals, spread, each = [], among = [] }, names) {
  /** @type {Record<string, Float64Array>} */
  const numbers = { calls: Float64Array.from({ length: parts.starts.length - 1 }, (_, index) => parts.starts[index + 1] - parts.starts[index]) };
  for (const [name, how] of Object.entries(totals)) if (names.includes(name)) numbers[name] = totalOf(columns, name, parts, how);
  if (among.length) numbers.of = countAmong(keysOf(columns, among), parts);
  if (spread) Object.assign(numbers, spreadOf(numberColumn(columns, spread), parts, each.length ? keysOf(columns, each) : null));
  /** @type {Record<string, import("../columns/columns.js").TextColumn>} */
  const texts = {};
  for (const name of names) {
    const column = textColumn(columns, name);
    if (column) texts[name] = commonTexts(column, parts);
  }
  return { texts, numbers };
}

/** @param {Columns} columns @param {string} name @param {Parts} parts @param {string} how */
function totalOf(columns, name, parts, how) {
  if (["middle", "iqr", "least"].includes(how)) {
    const runs = Object.keys(columns.numbers).filter((run) => run.startsWith(RUN));
    return overRuns(runs.map((run) => total(columns.numbers[run], parts, "sum")), how);
  }
  const values = numberColumn(columns, name);
  return how === "outer" ? total(outermost(values, numberColumn(columns, "parent_id"), parts), parts, "sum") : total(values, parts, how);
}

/** Returns the values without those of rows that a row of their own group called. @param {Float64Array} values @param {Float64Array} parent @param {Parts} parts */
function outermost(values, parent, { rows, groups }) {
  const group = new Int32Array(values.length).fill(-1);
  rows.forEach((row, at) => (group[row] = groups[at]));
  return values.map((value, row) => {
    if (group[row] < 0) return NaN;
    for (let above = parent[row]; above >= 0; above = parent[above]) if (group[above] === group[row]) return NaN;
    return value;
  });
}

/** @param {Float64Array} values @param {Parts} parts @param {string} how */
function total(values, { rows, starts }, how) {
  const result = new Float64Array(starts.length - 1).fill(NaN);
  const add = TOTALS[how];
  for (let index = 0; index < result.length; index += 1) {
    for (let at = starts[index]; at < starts[index + 1]; at += 1) {
      const value = values[rows[at]];
      if (!Number.isNaN(value)) result[index] = Number.isNaN(result[index]) ? value : add(result[index], value);
    }
  }
  return result;
}

/** Counts all rows of the table with the key of a group. @param {Int32Array} keys @param {Parts} parts */
function countAmong(keys, { rows, starts }) {
  const counts = new Int32Array(keys.length);
  for (const key of keys) counts[key] += 1;
  return Float64Array.from({ length: starts.length - 1 }, (_, index) => counts[keys[rows[starts[index]]]]);
}

/** Puts the groups in order. @param {Columns} made @param {Parts} parts @param {Int32Array} first @param {Int32Array} order @param {Int32Array} keys @returns {Groups} */
function placed({ texts, numbers }, { rows, starts }, first, order, keys) {
  const kept = order.reduce((sum, group) => sum + starts[group + 1] - starts[group], 0);
  const moved = new Int32Array(kept);
  const ends = new Int32Array(order.length + 1);
  order.forEach((group, place) => {
    moved.set(rows.subarray(starts[group], starts[group + 1]), ends[place]);
    ends[place + 1] = ends[place] + starts[group + 1] - starts[group];
  });
  const columns = {
    count: order.length,
    texts: Object.fromEntries(Object.entries(texts).map(([name, { values, codes }]) => [name, { values, codes: Int32Array.from(order, (group) => codes[group]) }])),
    numbers: Object.fromEntries(Object.entries(numbers).map(([name, values]) => [name, Float64Array.from(order, (group) => values[group])])),
  };
  const firstInOrder = Int32Array.from(order, (group) => first[group]);
  const groupOf = new Map(Array.from(firstInOrder, (row, place) => [keys[row], place]));
  return { columns, first: firstInOrder, rows: moved, starts: ends, groupOf, keys };
}
