// Profiles of columns: a small histogram of numbers, the most frequent texts; nbkit/analysis/query/profile.py is the kernel's.

import { numberColumn, textColumn } from "../columns/columns.js";

const SAMPLE = 50_000;
const BINS = 16;
const EDGE = 1e-9;
const TOP = 3;
const LOG_SPAN = 100;

/** Returns the profile of each column over these rows, or over an even sample of them. @param {import("../columns/columns.js").Columns} columns @param {Int32Array} ids @param {string[]} names */
export function profiles(columns, ids, names) {
  const few = ids.length <= SAMPLE ? ids : Int32Array.from({ length: SAMPLE }, (_, index) => ids[Math.floor((index * ids.length) / SAMPLE)]);
  return Object.fromEntries(names.map((name) => {
    const texts = textColumn(columns, name);
    return [name, texts ? ofTexts(texts, few) : ofNumbers(numberColumn(columns, name), few)];
  }));
}

/** @param {import("../columns/columns.js").TextColumn} texts @param {Int32Array} ids */
function ofTexts({ values, codes }, ids) {
  const counts = new Int32Array(values.length);
  let missing = 0;
  for (const row of ids) {
    if (codes[row] < 0) missing += 1;
    else counts[codes[row]] += 1;
  }
  const present = [...counts.keys()].filter((code) => counts[code]);
  const top = [...present].sort((left, right) => counts[right] - counts[left]).slice(0, TOP);
  return { top: top.map((code) => [values[code], counts[code]]), different: present.length, missing, count: ids.length };
}

/** @param {Float64Array} values @param {Int32Array} ids */
function ofNumbers(values, ids) {
  let [low, high, missing] = [Infinity, -Infinity, 0];
  for (const row of ids) {
    const value = values[row];
    if (Number.isNaN(value)) missing += 1;
    else if (Number.isFinite(value)) [low, high] = [Math.min(low, value), Math.max(high, value)];
  }
  if (low > high) return { bins: [], low: null, high: null, is_log: false, missing, count: ids.length };
  const isLog = low > 0 && high / low >= LOG_SPAN;
  const scaled = isLog ? (/** @type {number} */ value) => Math.log(value / low) : (/** @type {number} */ value) => value - low;
  const span = scaled(high);
  const bins = Array.from({ length: BINS }, () => 0);
  for (const row of ids) {
    if (!Number.isFinite(values[row])) continue;
    const bin = span > 0 && span < Infinity ? Math.floor((scaled(values[row]) / span) * BINS + EDGE) : 0;
    bins[Math.min(bin, BINS - 1)] += 1;
  }
  return { bins, low, high, is_log: isLog, missing, count: ids.length };
}
