// The columns of an op table out of a report's data: what follows from nesting is made here.

import { range } from "../../flamegraph/data/data.js";
import { overRuns } from "./runs.js";

/** Nanoseconds in the unit of times. */
const PER_US = 1000;
const PARENT = "parent_id";

/** @typedef {import("./columns.js").Columns & {depth: Int32Array}} OpColumns */

/** @type {WeakMap<object, OpColumns>} of the blocks they were made of: flamegraph and op table have the same */
const made = new WeakMap();

/** Returns the columns, and the depth of each op. @param {any} data as unpacked @returns {OpColumns} */
export function opColumns(data) {
  const columns = made.get(data) ?? newColumns(data);
  made.set(data, columns);
  return columns;
}

/** @param {any} data @returns {OpColumns} */
function newColumns({ count, texts, numbers, overview }) {
  const { gap, rest, ...plain } = numbers;
  const ids = Float64Array.from(range(count));
  const times = gap ? madeTimes({ count, gap, rest, own: plain.self_time_us, parent: plain[PARENT], isDevice: isDevice(texts.level) }) : {};
  const known = { op_id: ids, ...plain, ...times };
  const more = overview && !overview.cost ? moreTimes(known, texts) : {};
  return { count, texts, numbers: { ...known, ...more }, depth: depths(plain[PARENT]) };
}

/** Makes what nbkit/views/op_table/time_columns.py says of times in the notebook. @param {Record<string, Float64Array>} numbers @param {Record<string, import("./columns.js").TextColumn>} texts */
function moreTimes(numbers, { level, phase }) {
  const isBeside = isDevice(level);
  const host = numbers.self_time_us.map((time, row) => (isBeside[row] ? NaN : time));
  const whole = host.reduce((sum, time) => sum + (time || 0), 0) || 1;
  const inPhase = (/** @type {string} */ name) => host.map((time, row) => (phase.values[phase.codes[row]] === name ? time : NaN));
  const runs = Object.keys(numbers).filter((name) => name.startsWith("run_")).map((name) => numbers[name]);
  const spread = runs.length ? { median_us: overRuns(runs, "middle"), iqr_us: overRuns(runs, "iqr"), min_us: overRuns(runs, "least") } : {};
  return { self_fraction: host.map((time) => time / whole), forward_us: inPhase("forward"), backward_us: inPhase("backward"), ...spread };
}

/** Tells whether each op is work on a device. @param {import("./columns.js").TextColumn} level */
export function isDevice({ values, codes }) {
  const kernel = values.indexOf("kernel");
  const isKernel = new Uint8Array(codes.length);
  for (let row = 0; row < isKernel.length; row += 1) isKernel[row] = Number(kernel >= 0 && codes[row] === kernel);
  return isKernel;
}

/**
 * Restores start and total times from what nesting leaves of them; see nbkit/views/op_table/report_data.py.
 * @param {{count: number, gap: Float64Array, rest: Float64Array, own: Float64Array, parent: Float64Array, isDevice: Uint8Array}} known
 */
function madeTimes({ count, gap, rest, own, parent, isDevice }) {
  const [start, total, ends] = [new Float64Array(count), new Float64Array(count), new Float64Array(count).fill(NaN)];
  const holders = new Int32Array(count).fill(-1);
  for (let row = 0; row < count; row += 1) if (parent[row] < row) holders[row] = parent[row];
  const nanoseconds = (/** @type {number} */ value) => Math.round(value * PER_US);
  for (let row = count - 1; row >= 0; row -= 1) {
    total[row] += nanoseconds(own[row]) + nanoseconds(rest[row]);
    if (holders[row] >= 0 && !isDevice[row]) total[holders[row]] += total[row];
  }
  let end = 0;
  for (let row = 0; row < count; row += 1) {
    const holder = holders[row];
    const expected = holder < 0 ? end : Number.isNaN(ends[holder]) ? start[holder] : ends[holder];
    start[row] = expected + nanoseconds(gap[row]);
    if (holder < 0) end = start[row] + total[row];
    else ends[holder] = start[row] + total[row];
  }
  return { start_us: start.map((value) => value / PER_US), total_time_us: total.map((value) => value / PER_US) };
}

/** Counts within how many ops each op is called. @param {Float64Array} parent */
function depths(parent) {
  const depth = new Int32Array(parent.length);
  for (let row = 0; row < parent.length; row += 1) {
    // A parent nearly always comes before, with its own depth known.
    for (let above = parent[row]; above >= 0; above = parent[above]) {
      if (above < row) {
        depth[row] += depth[above] + 1;
        break;
      }
      depth[row] += 1;
    }
  }
  return depth;
}
