// The order of a table's rows by a column: ties keep theirs, missing values come last whichever way it goes.

import { numberColumn, textColumn } from "./columns.js";
import { byCharacters } from "./words.js";

/** @type {WeakMap<object, Float64Array>} the ranks of a column that was sorted by */
const ranked = new WeakMap();

/** Rows ordered by a column. Raises OptionError on an unknown one. @param {import("./columns.js").Columns} table @param {Int32Array} rows @param {string} name @param {boolean} isDescending */
export function ordered(table, rows, name, isDescending) {
  if (name === "op_id") return isDescending ? rows.slice().reverse() : rows;
  const texts = textColumn(table, name);
  return byRank(rows, texts ? once(texts, () => textRanks(texts)) : numberRanks(numberColumn(table, name)), isDescending);
}

/** @param {Int32Array} rows @param {Float64Array} ranks NaN for missing @param {boolean} isDescending */
export function byRank(rows, ranks, isDescending) {
  const present = rows.filter((row) => !Number.isNaN(ranks[row]));
  const missing = rows.filter((row) => Number.isNaN(ranks[row]));
  let largest = 0;
  for (const row of present) largest = Math.max(largest, ranks[row]);
  // One number of rank and place each: those sort fastest, and ties stay as they are.
  const keys = Float64Array.from(present, (row, place) => (isDescending ? largest - ranks[row] : ranks[row]) * present.length + place).sort();
  const found = new Int32Array(rows.length);
  for (let place = 0; place < keys.length; place += 1) found[place] = present[keys[place] % present.length];
  found.set(missing, present.length);
  return found;
}

/** Per row the rank of its number among all, NaN for missing. @param {Float64Array} values */
export function numberRanks(values) {
  return once(values, () => {
    const known = values.filter((value) => !Number.isNaN(value)).sort();
    const different = known.filter((value, place) => place === 0 || value !== known[place - 1]);
    return values.map((value) => (Number.isNaN(value) ? NaN : placeOf(different, value)));
  });
}

/** @param {import("./columns.js").TextColumn} column */
function textRanks({ values, codes }) {
  const order = values.map((_, code) => code).sort((left, right) => byCharacters(values[left], values[right]));
  const rank = new Float64Array(values.length);
  order.forEach((code, place) => (rank[code] = place));
  return Float64Array.from(codes, (code) => (code < 0 ? NaN : rank[code]));
}

/** @param {object} column @param {() => Float64Array} make @returns {Float64Array} */
function once(column, make) {
  const ranks = ranked.get(column) ?? make();
  ranked.set(column, ranks);
  return ranks;
}

/** Where a value stands among sorted ones that hold it. @param {Float64Array} sorted @param {number} value */
function placeOf(sorted, value) {
  let [low, high] = [0, sorted.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
