// How each column of a table looks: label, width in pixels, alignment and what its filter takes.

/**
 * @typedef {{name: string, label: string, width: number, isTail: boolean, isNumber: boolean, hasBar: boolean, hint: string}} Column
 */

const TEXT = "contains · =exact · a*b · !not · re:regex · null";
const TIME = ">1ms · 5us..2ms · null";
const NUMBER = ">5 · 3..8 · !=0 · null";

/** Columns that start with the smallest, though they are numbers. */
const FROM_START = ["op_id", "origin_op_id", "start_us", "rank"];

/** @type {Record<string, [label: string, width: number, hint: string]>} */
const KNOWN = {
  op_id: ["#", 64, NUMBER],
  op: ["op", 224, TEXT],
  level: ["level", 76, TEXT],
  model: ["model", 100, TEXT],
  module: ["module", 176, TEXT],
  phase: ["phase", 96, TEXT],
  output: ["output", 168, TEXT],
  input_shapes: ["input shapes", 168, TEXT],
  self_time_us: ["self time", 90, TIME],
  self_device_time_us: ["device self", 96, TIME],
  total_time_us: ["total time", 92, TIME],
  total_device_time_us: ["device total", 98, TIME],
  start_us: ["start", 84, TIME],
  flops: ["FLOPs", 96, NUMBER],
  size_bytes: ["bytes moved", 100, NUMBER],
  group: ["group", 100, TEXT],
  step: ["step", 56, NUMBER],
  device: ["device", 76, TEXT],
  stream: ["stream", 64, NUMBER],
  thread: ["thread", 64, NUMBER],
  source: ["source", 210, TEXT],
};

/** @type {Record<string, [label: string, width: number, hint: string]>} */
const KNOWN_DIFFS = {
  ...KNOWN,
  rank: ["rank", 76, NUMBER],
  op_id: ["op #", 64, NUMBER],
  status: ["verdict", 114, TEXT],
  noise_ratio: ["noise ratio", 104, NUMBER],
  max_abs_error: ["max abs error", 118, NUMBER],
  mean_abs_error: ["mean abs error", 128, NUMBER],
  max_rel_error: ["max rel error", 118, NUMBER],
  local_error: ["local error", 122, NUMBER],
  propagated_error: ["propagated error", 124, NUMBER],
  total_error: ["total error", 96, NUMBER],
  error_class: ["error class", 108, TEXT],
  origin_op_id: ["origin op #", 104, NUMBER],
  cosine_similarity: ["cosine", 84, NUMBER],
  max_ulp: ["max ULP", 84, NUMBER],
  mismatch_count: ["wrong elements", 124, NUMBER],
  mismatch_fraction: ["share wrong", 92, NUMBER],
  bias_ratio: ["bias ratio", 84, NUMBER],
  position: ["place", 60, NUMBER],
  role: ["role", 64, TEXT],
  dtype: ["dtype", 84, TEXT],
  shape: ["shape", 112, TEXT],
  message: ["message", 320, TEXT],
};

/** Columns whose end tells more than their start, so that the start is cut. */
const TAILS = new Set(["module", "source"]);
const BARS = new Set(["self_time_us", "noise_ratio"]);

/** The columns of the op table of these names, in order. @param {string[]} names @returns {Column[]} */
export function columnsOf(names) {
  return names.map((name) => column(name, KNOWN[name] ?? [name, 120, TEXT]));
}

/** Those of the diff table; the kernel says which are numbers. @param {string[]} names @param {Set<string>} numbers @returns {Column[]} */
export function diffColumnsOf(names, numbers) {
  return names.map((name) => column(name, KNOWN_DIFFS[name] ?? [name.replaceAll("_", " "), 112, numbers.has(name) ? NUMBER : TEXT]));
}

/** @param {string} name @param {[string, number, string]} look @returns {Column} */
function column(name, [label, width, hint]) {
  return { name, label, width, isTail: TAILS.has(name), isNumber: hint !== TEXT, hasBar: BARS.has(name), hint };
}

/** The sort after a click on a column: numbers start with the largest, except ids, starts and places; then the other way. */
export function nextSort(/** @type {{sort: string, is_descending: boolean}} */ sort, /** @type {Column} */ column) {
  if (sort.sort === column.name) return { sort: column.name, is_descending: !sort.is_descending };
  return { sort: column.name, is_descending: column.isNumber && !FROM_START.includes(column.name) };
}
