// The flamegraph's state out of the bytes of a report, as the notebook would send it; see flame_payload.py.

import { framesOf } from "./flame_frames.js";
import { inflated } from "./unpack.js";

const HEADER_BYTES = 4;
const WIDE_COLUMNS = new Set(["start", "total", "self", "device_self", "flops", "bytes", "time", "allocated", "usual", "change", "noise"]);

/** The states by trait; `ops` is the unpacked block of the op table of the same trace. @param {Uint8Array} packed @param {any} ops */
export async function flameStates(packed, ops) {
  const bytes = await inflated(packed);
  const headerEnd = HEADER_BYTES + new DataView(bytes.buffer).getUint32(0, true);
  const states = JSON.parse(new TextDecoder().decode(bytes.subarray(HEADER_BYTES, headerEnd)));
  const reader = { bytes, at: headerEnd };
  for (const state of Object.values(states)) {
    if (!state) continue;
    if (state.views) {
      for (const view of Object.values(state.views)) view.columns = columnsOf(reader, view.count, view.columns);
      continue;
    }
    state.columns = columnsOf(reader, state.count, state.columns);
    state.memory &&= state.memory.map((/** @type {any} */ { device, count, columns }) => (
      { device, ...columnsOf(reader, count, columns) }));
    if (!state.strings) Object.assign(state, framesOf(ops, state.columns.track));
  }
  return states;
}

/** Columns as buffers. @param {any} reader @param {number} count @param {[string, string, number, number][]} packs */
function columnsOf(reader, count, packs) {
  /** @type {Record<string, any>} */
  const columns = {};
  for (const [name, way, scale, width] of packs) {
    const values = fromPlanes(reader, count, width);
    WAYS[way](values, columns);
    if (scale !== 1) for (let row = 0; row < count; row += 1) values[row] /= scale;
    columns[name] = WIDE_COLUMNS.has(name) ? values : Int32Array.from(values);
  }
  return Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, values.buffer]));
}

/** Whole numbers from their byte planes, lowest first. @param {any} reader @param {number} count @param {number} width */
function fromPlanes(reader, count, width) {
  const values = new Float64Array(count);
  for (let plane = 0, factor = 1; plane < width; plane += 1, factor *= 256) {
    for (let row = 0; row < count; row += 1) values[row] += factor * reader.bytes[reader.at + row];
    reader.at += count;
  }
  return values;
}

/** @param {number} value */
function unfold(value) {
  return value % 2 ? -(value + 1) / 2 : value / 2;
}

/** Ways back from whole numbers to values, in place. @type {Record<string, (values: Float64Array, columns: any) => void>} */
const WAYS = {
  code: (values) => values.forEach((value, row) => (values[row] = value - 1)),
  known: (values) => values.forEach((value, row) => (values[row] = value ? value - 1 : NaN)),
  folded: (values) => values.forEach((value, row) => (values[row] = unfold(value))),
  rows_up: (values) => values.forEach((value, row) => (values[row] = value ? row - value : -1)),
  running_sum(values) {
    let sum = 0;
    values.forEach((value, row) => (values[row] = sum += unfold(value)));
  },
  // Self time: the total time less that of the children, and a rest that is nearly always 0.
  above_rest(values, { total, parent }) {
    const nanoseconds = total.map((/** @type {number} */ time) => Math.round(time * 1000));
    values.forEach((value, row) => (values[row] = nanoseconds[row] + unfold(value)));
    parent.forEach((/** @type {number} */ above, /** @type {number} */ row) => {
      if (above >= 0) values[above] -= nanoseconds[row];
    });
  },
};
