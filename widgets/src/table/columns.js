// How each column of a table looks: label, width in pixels, what it holds, and so its alignment, texts and filter.

import { cellText, numberOf } from "./cells.js";

/**
 * @typedef {import("./query/filter_text.js").Kind} Kind
 * @typedef {{name: string, label: string, width: number, kind: Kind, isTail: boolean, isNumber: boolean, hint: string,
 *   isFiltered: boolean, text: (cell: any) => string | null, bar: ((cell: any, largest: number) => number) | null, at?: number}} Column
 *   `bar`: length of a cell's bar, 0 to 1; `isFiltered`: whether rows can be filtered by it; `at`: its place among the cells of a row
 */

const NUMBER = ">5 · 3..8 · !=0 · null";
/** What a filter takes. @type {Record<Kind, string>} */
const HINTS = {
  text: "contains · =exact · a*b · !not · re:regex · null",
  time: ">1ms · 5us..2ms · null",
  bytes: ">1MiB · 1kB..2MB · null",
  share: ">5 % · 3..8 % · null",
  flops: NUMBER, whole: NUMBER, metric: NUMBER,
};

/** Columns that start with the smallest, though they are numbers. */
const FROM_START = ["op_id", "origin_op_id", "start_us", "rank", "row"];

/** @type {Record<string, [label: string, width: number, kind: Kind]>} */
const KNOWN = {
  op_id: ["#", 64, "whole"],
  op: ["op", 224, "text"],
  level: ["level", 76, "text"],
  model: ["model", 100, "text"],
  module: ["module", 176, "text"],
  phase: ["phase", 96, "text"],
  output: ["output", 168, "text"],
  input_shapes: ["input shapes", 168, "text"],
  self_time_us: ["self time", 104, "time"],
  self_fraction: ["%", 64, "share"],
  median_us: ["median of runs", 112, "time"],
  iqr_us: ["IQR of runs", 92, "time"],
  min_us: ["min of runs", 92, "time"],
  slow_runs: ["slow runs", 150, "text"],
  forward_us: ["forward", 84, "time"],
  backward_us: ["backward", 84, "time"],
  self_device_time_us: ["device self", 96, "time"],
  total_time_us: ["total time", 92, "time"],
  total_device_time_us: ["device total", 98, "time"],
  start_us: ["start", 84, "time"],
  flops: ["FLOPs", 96, "flops"],
  size_bytes: ["bytes moved", 100, "bytes"],
  group: ["group", 100, "text"],
  step: ["step", 56, "whole"],
  device: ["device", 76, "text"],
  stream: ["stream", 64, "whole"],
  thread: ["thread", 64, "whole"],
  own_source: ["your line", 150, "text"],
  source: ["source", 210, "text"],
  source_text: ["line", 240, "text"],
  location: ["module", 208, "text"],
  layer: ["layer", 208, "text"],
  calls: ["calls", 64, "whole"],
  of: ["of", 56, "whole"],
  instances: ["layers", 60, "whole"],
  min: ["min", 84, "time"],
  median: ["median", 84, "time"],
  max: ["max", 84, "time"],
};

/** @type {Record<string, [label: string, width: number, kind: Kind]>} */
const KNOWN_DIFFS = {
  ...KNOWN,
  rank: ["rank", 76, "whole"],
  calls: ["results", 72, "whole"],
  op_id: ["op #", 64, "whole"],
  status: ["verdict", 134, "text"],
  noise_ratio: ["noise ratio", 104, "metric"],
  max_abs_error: ["max abs error", 118, "metric"],
  mean_abs_error: ["mean abs error", 128, "metric"],
  max_rel_error: ["max rel error", 118, "metric"],
  local_error: ["local error", 122, "metric"],
  propagated_error: ["propagated error", 124, "metric"],
  total_error: ["total error", 96, "metric"],
  error_class: ["error class", 108, "text"],
  origin_op_id: ["origin op #", 104, "whole"],
  cosine_similarity: ["cosine", 84, "metric"],
  max_ulp: ["max ULP", 84, "whole"],
  mismatch_count: ["mismatched elements", 150, "whole"],
  mismatch_fraction: ["mismatch share", 116, "metric"],
  bias_ratio: ["bias ratio", 84, "metric"],
  position: ["place", 60, "whole"],
  role: ["role", 64, "text"],
  dtype: ["dtype", 84, "text"],
  shape: ["shape", 112, "text"],
  message: ["message", 320, "text"],
};

/** Columns whose end tells more than their start, so that the start is cut. */
const TAILS = new Set(["module", "own_source", "source", "location", "layer", "name", "right_name", "right_module", "right_source"]);
/** Columns that only groups have: no filter goes by them. */
const OF_GROUPS = new Set(["forward_us", "backward_us", "median_us", "calls", "of", "instances", "min", "median", "max"]);
/** Bars of one column have one scale, up to the largest value shown. @type {Record<string, (value: number, largest: number) => number>} */
const BARS = {
  self_time_us: (value, largest) => value / largest,
  noise_ratio: (value, largest) => Math.log10(value) / Math.log10(Math.max(largest, 10)),
};

/** Returns the columns of the op table of these names, in order; the kernel may say how those look that are not known here. @param {string[]} names @param {Record<string, any>} [looks] @returns {Column[]} */
export function columnsOf(names, looks = {}) {
  return names.map((name) => column(name, looks[name] ?? KNOWN[name] ?? [name, 120, "text"]));
}

/** Returns the columns of the diff table; the kernel says which are numbers, and how those look that are not known here. @param {string[]} names @param {Set<string>} numbers @param {Record<string, any>} [looks] @returns {Column[]} */
export function diffColumnsOf(names, numbers, looks = {}) {
  return names.map((name) => column(name, looks[name] ?? KNOWN_DIFFS[name] ?? [name.replaceAll("_", " "), 112, kindOf(name, numbers)]));
}

/** Returns the kind of a column that has no look of its own. @param {string} name @param {Set<string>} numbers @returns {Kind} */
function kindOf(name, numbers) {
  if (!numbers.has(name)) return "text";
  return name.endsWith("_us") ? "time" : name.endsWith("_bytes") ? "bytes" : name.endsWith("_count") ? "whole" : "metric";
}

/** @param {string} name @param {[string, number, Kind, bar?: string]} look whose `bar` names the column whose bars it has @returns {Column} */
function column(name, [label, width, kind, bar = name]) {
  const length = BARS[bar];
  return {
    name, label, width, kind, isTail: TAILS.has(name), isNumber: kind !== "text", isFiltered: !OF_GROUPS.has(name), hint: HINTS[kind], text: (cell) => cellText(name, kind, cell),
    bar: length ? (cell, largest) => Math.max(0, Math.min(length(numberOf(cell), largest), 1)) || 0 : null,
  };
}

/**
 * Returns the sort after a click on a column: numbers start with the largest, except ids, starts and places; then the other way.
 * @param {import("./query/query.js").Sort[]} sort @param {Column} column @param {boolean} isAdded whether it sorts what the columns before leave equal
 */
export function nextSort(sort, column, isAdded = false) {
  const before = sort.find((part) => part.column === column.name);
  const descending = before ? !before.descending : column.isNumber && !FROM_START.includes(column.name);
  const next = { column: column.name, descending };
  if (!isAdded) return [next];
  return before ? sort.map((part) => (part === before ? next : part)) : [...sort, next];
}
