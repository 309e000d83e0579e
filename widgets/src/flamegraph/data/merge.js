// The merged call tree: rows of one name under one merged parent become one frame.

import { deviceTracks } from "./data.js";
import { rowNames } from "./frames.js";
import { PairMap } from "./pair_map.js";

/** A growing tree of names. */
export class FrameTree {
  /** @param {{names: string[], texts: string[], kinds: string[]}} known by the index of a name @param {number} rows */
  constructor({ names, texts, kinds }, rows) {
    this.names = names;
    this.texts = texts;
    this.kinds = kinds;
    this.size = 0;
    this.children = new PairMap();
    this.parent = new Int32Array(1024);
    this.name = new Int32Array(1024);
    this.of = new Int32Array(rows).fill(-1);
  }

  /** Returns the frame of a name under a parent, made where it is new. @param {number} parent @param {number} name */
  child(parent, name) {
    const known = this.children.get(parent, name);
    if (known >= 0) return known;
    if (this.size === this.parent.length) {
      this.parent = grown(this.parent);
      this.name = grown(this.name);
    }
    this.parent[this.size] = parent;
    this.name[this.size] = name;
    this.children.set(parent, name, this.size);
    return this.size++;
  }

  /**
   * Merges rows into frames, and adds each row's weight to its frame.
   * @param {Float64Array} weight per row; what is not positive adds nothing
   * @param {{countsBelow: boolean}} options whether a frame counts the rows below it too
   * @returns {import("./frames.js").Frames}
   */
  frames(weight, { countsBelow }) {
    const { size, of } = this;
    const self = new Float64Array(size);
    const count = new Int32Array(size);
    const row = new Int32Array(size).fill(-1);
    for (let index = 0; index < of.length; index += 1) {
      const frame = of[index];
      if (frame < 0) continue;
      if (weight[index] > 0) self[frame] += weight[index];
      count[frame] += 1;
      if (row[frame] < 0) row[frame] = index;
    }
    const parent = this.parent.slice(0, size);
    const total = summed(self, parent);
    if (countsBelow) countUp(count, row, parent);
    const name = this.name.slice(0, size);
    const { names, texts, kinds } = this;
    return { size, parent, name, names, texts, kinds, total, self, width: total, count, row, of, isTimeline: false };
  }
}

/** @param {Int32Array} values */
function grown(values) {
  const larger = new Int32Array(values.length * 2);
  larger.set(values);
  return larger;
}

/** Sums each frame's own value and those below it. @param {Float64Array} self @param {Int32Array} parent */
export function summed(self, parent) {
  const total = self.slice();
  for (let frame = total.length - 1; frame >= 0; frame -= 1) {
    if (parent[frame] >= 0) total[parent[frame]] += total[frame];
  }
  return total;
}

/** @param {Int32Array} count @param {Int32Array} row @param {Int32Array} parent */
function countUp(count, row, parent) {
  for (let frame = count.length - 1; frame >= 0; frame -= 1) {
    const above = parent[frame];
    if (above < 0) continue;
    count[above] += count[frame];
    if (row[above] < 0 || row[frame] < row[above]) row[above] = row[frame];
  }
}

/**
 * Returns the weights of merged views: rows of the host by their self time, or by the device time they launched themselves.
 * Where no row of the host knows any device time, the device's own rows are taken.
 * @param {import("./data.js").Trace} trace
 * @param {string} clock "host" or "device"
 */
export function weights(trace, clock) {
  const { track, self, device_self: deviceSelf } = trace.columns;
  const isDevice = deviceTracks(trace);
  if (clock === "host") return { weight: self, isIn: (/** @type {number} */ row) => !isDevice[track[row]] };
  const isLaunched = deviceSelf.some((/** @type {number} */ time, /** @type {number} */ row) => time > 0 && !isDevice[track[row]]);
  return {
    weight: isLaunched ? deviceSelf : self,
    isIn: (/** @type {number} */ row) => isDevice[track[row]] !== isLaunched,
  };
}

/** Returns the merged call tree. @param {import("./data.js").Trace} trace @param {string} clock */
export function mergedFrames(trace, clock) {
  const { name, ...known } = rowNames(trace);
  const { weight, isIn } = weights(trace, clock);
  const tree = new FrameTree(known, trace.count);
  const { parent } = trace.columns;
  for (let row = 0; row < trace.count; row += 1) {
    if (!isIn(row)) continue;
    const above = parent[row] < 0 ? -1 : tree.of[parent[row]];
    tree.of[row] = tree.child(above, name[row]);
  }
  return tree.frames(weight, { countsBelow: false });
}
