// The order of a table's rows by a column: ties keep theirs, missing values come last whichever way it goes.

import { numberColumn, textColumn } from "../columns/columns.js";

/** @type {WeakMap<object, Float64Array>} the ranks of a column that was sorted by */
const ranked = new WeakMap();

/** Sorts rows as a query asks, by its first part first. Throws on an unknown column. @param {import("../columns/columns.js").Columns} table @param {Int32Array} rows @param {{column: string, descending?: boolean}[]} sort */
export function ordered(table, rows, sort) {
  return sort.reduceRight((result, { column, descending }) => byRank(result, ranksOf(table, column), Boolean(descending)), rows);
}

/** Returns for each row the rank of its value in a column, NaN for missing. Texts rank by their UTF-16 code units, in the kernel by their characters: beyond U+FFFF the two differ. @param {import("../columns/columns.js").Columns} table @param {string} name */
function ranksOf(table, name) {
  const texts = textColumn(table, name);
  return texts ? once(texts, () => textRanks(texts)) : numberRanks(numberColumn(table, name));
}

/** @param {Int32Array} rows @param {Float64Array} ranks NaN for missing @param {boolean} isDescending */
function byRank(rows, ranks, isDescending) {
  const present = rows.filter((row) => ranks[row] >= 0);
  const { length } = present;
  let largest = 0;
  for (const row of present) if (ranks[row] > largest) largest = ranks[row];
  // One number of rank and place each: those sort fastest, and ties stay as they are.
  const keys = new Float64Array(length);
  for (let index = 0; index < length; index += 1) {
    const rank = ranks[present[index]];
    keys[index] = (isDescending ? largest - rank : rank) * length + index;
  }
  keys.sort();
  const result = new Int32Array(rows.length);
  for (let index = 0; index < length; index += 1) result[index] = present[keys[index] % length];
  if (length < rows.length) result.set(rows.filter((row) => Number.isNaN(ranks[row])), length);
  return result;
}

/** Returns for each row the rank of its number among all, NaN for missing. @param {Float64Array} values */
function numberRanks(values) {
  return once(values, () => {
    // NaN sorts last.
    const different = values.slice().sort();
    let count = 0;
    for (const value of different) if (count === 0 || value > different[count - 1]) different[count++] = value;
    const sorted = different.subarray(0, count);
    const ranks = new Float64Array(values.length).fill(NaN);
    for (let row = 0; row < ranks.length; row += 1) if (!Number.isNaN(values[row])) ranks[row] = indexOf(sorted, values[row]);
    return ranks;
  });
}

/** @param {import("../columns/columns.js").TextColumn} column */
function textRanks({ values, codes }) {
  const order = values.map((_, code) => code).sort((left, right) => (values[left] < values[right] ? -1 : 1));
  const rank = new Float64Array(values.length);
  order.forEach((code, index) => (rank[code] = index));
  const ranks = new Float64Array(codes.length).fill(NaN);
  for (let row = 0; row < ranks.length; row += 1) if (codes[row] >= 0) ranks[row] = rank[codes[row]];
  return ranks;
}

/** @param {object} column @param {() => Float64Array} make @returns {Float64Array} */
function once(column, make) {
  const ranks = ranked.get(column) ?? make();
  ranked.set(column, ranks);
  return ranks;
}

/** Returns where a value stands among sorted ones that hold it. @param {Float64Array} sorted @param {number} value */
function indexOf(sorted, value) {
  let [low, high] = [0, sorted.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
