// Which calls a range of time has, and their sums by op and by module: calls, and the self time inside the range, to the edge.

import { deviceTracks } from "./data.js";

/**
 * @typedef {{from: number, to: number}} Range in microseconds
 * @typedef {{name: string, count: number, self: number, deviceCount: number, deviceSelf: number}} RangeLine
 *   calls on the host and their self time, and those on devices
 * @typedef {object} RangeSums
 * @property {Int32Array} rows op_ids of the calls with a part in the range, on the host and on devices, ascending
 * @property {number} count how many they are
 * @property {number} cut how many of them an edge of the range cuts
 * @property {number} self self time inside the range on the host, all threads together
 * @property {number} deviceSelf the same of devices
 * @property {RangeLine[]} byOp most self time first
 * @property {RangeLine[]} byModule
 */

/**
 * Sums up what of a trace lies in a range. A call inside of it counts with its self time; one that an edge cuts counts with
 * the part of it inside the range without the parts of the calls in it, so that ranges side by side add up to the one over both.
 * @param {import("./data.js").Trace} trace @param {Range} range @returns {RangeSums}
 */
export function rangeSums(trace, { from, to }) {
  const { parent, start, total, self } = trace.columns;
  const sums = new Sums(trace);
  /** Part of each cut call inside the range, without its children. @type {Map<number, number>} */
  const parts = new Map();
  const rows = new Int32Array(trace.count);
  let count = 0;
  for (let row = 0; row < trace.count; row += 1) {
    const left = start[row];
    const right = left + total[row];
    // A call without duration lies where it starts.
    if (left >= to || (right <= from && (right < from || left < right))) continue;
    const isInside = left >= from && right <= to;
    const above = parts.get(parent[row]);
    if (above !== undefined) parts.set(parent[row], above - Math.min(right, to) + Math.max(left, from));
    if (!isInside) parts.set(row, Math.min(right, to) - Math.max(left, from));
    rows[count++] = row;
    sums.count(row);
    if (isInside) sums.add(row, self[row]);
  }
  for (const [row, part] of parts) sums.add(row, part);
  return { ...sums.lines(), rows: rows.slice(0, count), count, cut: parts.size };
}

/** Calls and self time by code, the host's before the devices'. */
class Sums {
  /** @param {import("./data.js").Trace} trace */
  constructor({ columns, strings, tracks }) {
    this.columns = columns;
    this.strings = strings;
    this.isDevice = deviceTracks(/** @type {any} */ ({ tracks }));
    // Without a module: the first place.
    this.sizes = { op: strings.op.length, module: strings.module.length + 1 };
    this.calls = { op: new Int32Array(2 * this.sizes.op), module: new Int32Array(2 * this.sizes.module) };
    this.times = { op: new Float64Array(2 * this.sizes.op), module: new Float64Array(2 * this.sizes.module) };
  }

  /** @param {number} row */
  count(row) {
    const { op, module, track } = this.columns;
    const isDevice = this.isDevice[track[row]];
    this.calls.op[op[row] + (isDevice ? this.sizes.op : 0)] += 1;
    this.calls.module[module[row] + 1 + (isDevice ? this.sizes.module : 0)] += 1;
  }

  /** Adds self time; what is not positive adds nothing, as in the merged views. @param {number} row @param {number} time */
  add(row, time) {
    if (!(time > 0)) return;
    const { op, module, track } = this.columns;
    const isDevice = this.isDevice[track[row]];
    this.times.op[op[row] + (isDevice ? this.sizes.op : 0)] += time;
    this.times.module[module[row] + 1 + (isDevice ? this.sizes.module : 0)] += time;
  }

  lines() {
    const byOp = this.linesOf("op", this.strings.op);
    const byModule = this.linesOf("module", ["outside modules", ...this.strings.module.map((path) => path || "root module")]);
    const sum = (/** @type {(line: RangeLine) => number} */ of) => byOp.reduce((all, line) => all + of(line), 0);
    return {
      byOp, byModule, self: sum((line) => line.self), deviceSelf: sum((line) => line.deviceSelf),
    };
  }

  /** @param {"op" | "module"} by @param {string[]} names @returns {RangeLine[]} */
  linesOf(by, names) {
    const [size, calls, times] = [this.sizes[by], this.calls[by], this.times[by]];
    const lines = names.map((name, code) => ({
      name, count: calls[code], self: times[code], deviceCount: calls[size + code], deviceSelf: times[size + code],
    }));
    return lines.filter(({ count, deviceCount }) => count + deviceCount > 0)
      .sort((a, b) => b.self + b.deviceSelf - a.self - a.deviceSelf || (a.name < b.name ? -1 : 1));
  }
}
