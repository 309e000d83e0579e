// Frames: the tree that one view shows, as columns with parents before their children; and the frames of the timeline.

import { range } from "./data.js";
import { PairMap } from "./pair_map.js";
import { timesText } from "./repeats.js";

/**
 * @typedef {object} Frames
 * @property {number} size
 * @property {Int32Array} parent -1 at the top
 * @property {Int32Array} name index into names and texts
 * @property {string[]} names what is written on a frame
 * @property {string[]} texts what search looks in
 * @property {string[]} kinds what a name is one of: op, module or phase; with texts it tells frames of one parent apart
 * @property {Float64Array} total
 * @property {Float64Array} self
 * @property {Float64Array} width extent on the axis
 * @property {Int32Array} count rows of the trace in a frame
 * @property {Int32Array} row op_id of the first of them, -1 if there is none
 * @property {Int32Array} of frame of each op_id, -1 if it is not in this view
 * @property {boolean} isTimeline
 * @property {import("./sandwich.js").Callers} [callers] in a sandwich: which frames are callers
 */

/**
 * Returns the name of each row: its op, and for a forward call of a module its path and class.
 * @param {import("./data.js").Trace} trace
 * @returns {{name: Int32Array, names: string[], texts: string[], kinds: string[]}} names end a path with its last part, texts have all of it
 */
export function rowNames(trace) {
  const { count, columns, strings } = trace;
  const moduleLevel = strings.level.indexOf("module");
  const kinds = strings.op.map(() => "op");
  if (moduleLevel < 0) return { name: columns.op, names: strings.op, texts: strings.op, kinds };
  const name = Int32Array.from(columns.op);
  const names = [...strings.op];
  const texts = [...strings.op];
  const known = new PairMap();
  const { level, module } = columns;
  for (let row = 0; row < count; row += 1) {
    if (level[row] !== moduleLevel || module[row] < 0) continue;
    let index = known.get(module[row], name[row]);
    if (index < 0) {
      const [path, type] = [strings.module[module[row]], strings.op[name[row]]];
      texts.push(path ? `${path} (${type})` : type);
      kinds.push("module");
      index = names.push(path ? `${lastParts(path)}${timesText(trace, path)} (${type})` : type) - 1;
      known.set(module[row], columns.op[row], index);
    }
    name[row] = index;
  }
  return { name, names, texts, kinds };
}

/** Returns the end of a path: its last name, with the numbers after it, or what repeated layers share for these. @param {string} path */
function lastParts(path) {
  return /[^.]+(\.(\d+|\*|\[\d+-\d+\]))*$/.exec(path)?.[0] ?? path;
}

/** Makes every row a frame of its own, at its time. @param {import("./data.js").Trace} trace @returns {Frames} */
export function timelineFrames(trace) {
  const { count, columns } = trace;
  const { name, names, texts, kinds } = rowNames(trace);
  const rows = range(count);
  return {
    size: count, parent: columns.parent, name, names, texts, kinds, total: columns.total, self: columns.self,
    width: columns.total, count: new Int32Array(count).fill(1), row: rows, of: rows, isTimeline: true,
  };
}

/** Returns the frame and its ancestors, from the top; none for -1. @param {Frames} frames @param {number} frame */
export function pathOf(frames, frame) {
  const path = [];
  for (let at = frame; at >= 0; at = frames.parent[at]) path.push(at);
  return path.reverse();
}

/** Tells which frames are this one or below it. @param {Frames} frames @param {number} top */
export function subtree(frames, top) {
  const inside = new Uint8Array(frames.size);
  inside[top] = 1;
  for (let frame = top + 1; frame < frames.size; frame += 1) {
    const parent = frames.parent[frame];
    if (parent >= top) inside[frame] = inside[parent];
  }
  return inside;
}

/** Returns the op_ids of all rows in a frame and below it, ascending. @param {Frames} frames @param {number} top */
export function rowsInside(frames, top) {
  if (frames.callers && top >= frames.callers.first) return frames.callers.rowsThrough(top);
  const inside = subtree(frames, top);
  const ids = new Int32Array(frames.of.length);
  let length = 0;
  for (let row = 0; row < frames.of.length; row += 1) {
    const frame = frames.of[row];
    if (frame >= 0 && inside[frame]) ids[length++] = row;
  }
  return ids.slice(0, length);
}
