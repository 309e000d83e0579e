// How each column of the op table looks: label, width in pixels, alignment and what its filter takes.

/**
 * @typedef {{name: string, label: string, width: number, isTail: boolean, isNumber: boolean, hint: string}} Column
 */

const TEXT = "contains · =exact · a*b · !not · re:regex · null";
const TIME = ">1ms · 5us..2ms · null";
const NUMBER = ">5 · 3..8 · !=0 · null";

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

/** Columns whose end tells more than their start, so that the start is cut. */
const TAILS = new Set(["module", "source"]);

/** The columns of these names, in order. @param {string[]} names @returns {Column[]} */
export function columnsOf(names) {
  return names.map((name) => {
    const [label, width, hint] = KNOWN[name] ?? [name, 120, TEXT];
    return { name, label, width, isTail: TAILS.has(name), isNumber: hint !== TEXT, hint };
  });
}

/** The sort after a click on a column: numbers start with the largest, except ids and starts; then the other way. */
export function nextSort(/** @type {{sort: string, is_descending: boolean}} */ sort, /** @type {Column} */ column) {
  if (sort.sort === column.name) return { sort: column.name, is_descending: !sort.is_descending };
  return { sort: column.name, is_descending: column.isNumber && !["op_id", "start_us"].includes(column.name) };
}
