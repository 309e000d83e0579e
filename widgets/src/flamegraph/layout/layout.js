// Where frames lie: rows of boxes that do not overlap, each row sorted by its left edges.

import { childrenOf } from "../data/links.js";
import { isCaller } from "../data/sandwich.js";

/**
 * @typedef {object} Layout
 * @property {number} rowCount
 * @property {Int32Array} row of each frame
 * @property {Float64Array} left edge of each frame on the axis
 * @property {Rows} rows
 * @property {boolean} isInOrder whether the frames of each row are in the order of their index
 * @property {Block[]} blocks what is stacked: one for each track, one in all for a merged view
 * @property {number} min
 * @property {number} max
 *
 * @typedef {{starts: Int32Array, items: Int32Array, left: Float64Array, width: Float64Array}} Rows
 *   row r holds the frames items[starts[r]] up to items[starts[r + 1]]; left and width are those of each frame
 * @typedef {{name: string, kind: string, first: number, count: number, hasHeading: boolean}} Block rows of one track
 */

/** Gap up to which two boxes of a row may overlap: rounding of foreign traces, in microseconds. */
const SLACK = 0.0015;
/** Rows that a box may be moved down to find a free place. */
const LANES = 64;

/** Lays out every track as a block of rows, in time. @param {import("../data/data.js").Trace} trace @returns {Layout} */
export function timelineLayout(trace) {
  const { columns, tracks } = trace;
  const { row, counts } = depthsOf(trace);
  const hasHeading = counts.filter((rows) => rows.length > 0).length > 1;
  let rowCount = 0;
  const blocks = [];
  const base = new Int32Array(tracks.length);
  for (const [index, track] of tracks.entries()) {
    const count = counts[index].length;
    if (!count) continue;
    base[index] = rowCount + (hasHeading ? 1 : 0);
    blocks.push({ ...track, first: base[index], count, hasHeading });
    rowCount = base[index] + count;
  }
  const starts = new Int32Array(rowCount + 1);
  counts.forEach((rows, index) => rows.forEach((count, depth) => (starts[base[index] + depth + 1] = count)));
  for (let at = 0; at < rowCount; at += 1) starts[at + 1] += starts[at];
  const { items, isInOrder } = scattered(row, columns.track, base, starts, columns.start);
  const rows = { starts, items, left: columns.start, width: columns.total };
  return { rowCount, row, left: columns.start, rows, blocks, isInOrder, ...extent(rows) };
}

/**
 * Returns each frame's depth in its track, below its parent and what it overlaps, and how many frames each depth has.
 * @param {import("../data/data.js").Trace} trace
 */
function depthsOf({ count, columns, tracks }) {
  const { parent, track, start, total } = columns;
  const row = new Int32Array(count);
  const counts = tracks.map(() => /** @type {number[]} */ ([]));
  const ends = tracks.map(() => /** @type {number[]} */ ([]));
  for (let frame = 0; frame < count; frame += 1) {
    const end = ends[track[frame]];
    const above = parent[frame] < 0 ? 0 : row[parent[frame]] + 1;
    const from = start[frame] + SLACK;
    let depth = above;
    while (depth < end.length && end[depth] > from && depth < above + LANES) depth += 1;
    while (end.length <= depth) {
      end.push(-Infinity);
      counts[track[frame]].push(0);
    }
    end[depth] = start[frame] + total[frame];
    counts[track[frame]][depth] += 1;
    row[frame] = depth;
  }
  return { row, counts };
}

/** Sorts frames by row: turns depths into rows, and orders a row that is not. @param {Int32Array} row @param {Int32Array} track @param {Int32Array} base @param {Int32Array} starts @param {Float64Array} start */
function scattered(row, track, base, starts, start) {
  const items = new Int32Array(row.length);
  const next = starts.slice();
  const last = new Float64Array(starts.length).fill(-Infinity);
  const mixed = new Set();
  for (let frame = 0; frame < row.length; frame += 1) {
    const at = row[frame] + base[track[frame]];
    row[frame] = at;
    if (start[frame] < last[at]) mixed.add(at);
    last[at] = start[frame];
    items[next[at]++] = frame;
  }
  for (const at of mixed) items.subarray(starts[at], starts[at + 1]).sort((a, b) => start[a] - start[b] || a - b);
  return { items, isInOrder: mixed.size === 0 };
}

/** @param {Rows} rows */
function extent({ starts, items, left, width }) {
  let [min, max] = [Infinity, -Infinity];
  for (let row = 0; row + 1 < starts.length; row += 1) {
    if (starts[row] === starts[row + 1]) continue;
    const last = items[starts[row + 1] - 1];
    min = Math.min(min, left[items[starts[row]]]);
    max = Math.max(max, left[last] + width[last]);
  }
  if (!(max > min)) return { min: Number.isFinite(min) ? min : 0, max: (Number.isFinite(min) ? min : 0) + 1 };
  return { min, max };
}

/**
 * Lays out the callers of an op above it, the nearest next to it, and its callees below it.
 * @param {import("../data/frames.js").Frames} frames @param {import("../data/links.js").Links} links @returns {Layout}
 */
export function sandwichLayout(frames, links) {
  const left = new Float64Array(frames.size);
  const callers = levels(frames, links, left, true).slice(1).reverse();
  const callees = levels(frames, links, left, false);
  const blocks = [[callers, "called by"], [callees, "the op and what it calls"]].filter(([list]) => list.length)
    .map(([list, name]) => ({ name: /** @type {string} */ (name), list: /** @type {number[][]} */ (list) }));
  const row = new Int32Array(frames.size);
  const starts = [0];
  /** @type {number[]} */
  const items = [];
  const placed = blocks.map(({ name, list }) => {
    // The row of the heading is empty.
    starts.push(items.length);
    const first = starts.length - 1;
    for (const level of list) {
      for (const frame of level) row[frame] = starts.length - 1;
      items.push(...level);
      starts.push(items.length);
    }
    return { name, kind: "host", first, count: list.length, hasHeading: true };
  });
  const rows = { starts: Int32Array.from(starts), items: Int32Array.from(items), left, width: frames.width };
  return { rowCount: starts.length - 1, row, left, rows, blocks: placed, isInOrder: false, ...extent(rows) };
}

/** Returns the frames of each depth from the op on, and places them side by side. @param {import("../data/frames.js").Frames} frames @param {import("../data/links.js").Links} links @param {Float64Array} left @param {boolean} isOfCallers */
function levels(frames, links, left, isOfCallers) {
  const found = [];
  for (let level = [...links.roots]; level.length; ) {
    found.push(level);
    const next = [];
    for (const frame of level) {
      let cursor = left[frame];
      for (const child of childrenOf(links, frame)) {
        if (isCaller(frames, child) !== isOfCallers) continue;
        left[child] = cursor;
        cursor += frames.width[child];
        next.push(child);
      }
    }
    level = next;
  }
  return found;
}

/** Lays out merged frames side by side in the order of their links. @param {import("../data/frames.js").Frames} frames @param {import("../data/links.js").Links} links @returns {Layout} */
export function mergedLayout(frames, links) {
  const { size, width, parent } = frames;
  const row = new Int32Array(size);
  const left = new Float64Array(size);
  const items = new Int32Array(size);
  const starts = [0];
  items.set(links.roots);
  let end = links.roots.length;
  let cursor = 0;
  for (const root of links.roots) {
    left[root] = cursor;
    cursor += width[root];
  }
  for (let from = 0; from < end; ) {
    starts.push(end);
    const to = end;
    for (; from < to; from += 1) {
      cursor = left[items[from]];
      for (const child of childrenOf(links, items[from])) {
        left[child] = cursor;
        row[child] = row[parent[child]] + 1;
        cursor += width[child];
        items[end++] = child;
      }
    }
  }
  const rowCount = starts.length - 1;
  const rows = { starts: Int32Array.from(starts), items, left, width };
  const blocks = [{ name: "", kind: "host", first: 0, count: rowCount, hasHeading: false }];
  return { rowCount, row, left, rows, blocks, isInOrder: false, ...extent(rows) };
}
