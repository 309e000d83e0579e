// The callers and callees of one op, merged: what it was called by on one side of it, what it called on the other.

import { FrameTree, summed } from "./merge.js";

/**
 * @typedef {object} Callers what is known of the frames of a sandwich from `first` on, which are callers
 * @property {number} first
 * @property {number} names count of the names that are none of a caller; a caller's name is its own, so many further on
 * @property {import("./frames.js").Frames} merged the merged calls that the sandwich is made of
 * @property {[caller: number, merged: number][]} pairs which merged frames each caller stands for
 * @property {(caller: number) => Int32Array} rowsThrough the op_ids of the calls of the op that came through a caller, and of what they called
 */

/** Tells whether a frame is a caller in a sandwich. @param {import("./frames.js").Frames} frames @param {number} frame */
export function isCaller({ callers }, frame) {
  return callers !== undefined && frame >= callers.first;
}

/**
 * Merges all calls of one name: frame 0 is that name, what it called hangs below it, and what it was called by, too, each caller below
 * the one it called. A caller has the time of the op's calls that came through it. A call inside a call of the same name is a callee.
 * @param {import("./frames.js").Frames} merged merged calls @param {number} name index into its names @returns {import("./frames.js").Frames}
 */
export function sandwichFrames(merged, name) {
  const { names, texts, kinds, of } = merged;
  const tree = new FrameTree({
    names: [...names, ...names], texts: [...texts, ...texts.map((text) => `${text} (caller)`)], kinds: [...kinds, ...kinds.map((kind) => `caller ${kind}`)],
  }, of.length);
  const at = new Int32Array(merged.size).fill(-1);
  /** @type {number[]} outermost calls of the name */
  const tops = [];
  for (let frame = 0; frame < merged.size; frame += 1) {
    const above = merged.parent[frame] < 0 ? -1 : at[merged.parent[frame]];
    if (above < 0 && merged.name[frame] !== name) continue;
    at[frame] = tree.child(above, merged.name[frame]);
    if (above < 0) tops.push(frame);
  }
  const first = tree.size;
  /** @type {[number, number][]} */
  const pairs = [];
  const last = tops.map((top) => {
    let frame = at[top];
    for (let above = merged.parent[top]; above >= 0; above = merged.parent[above]) {
      frame = tree.child(frame, merged.name[above] + names.length);
      pairs.push([frame, above]);
    }
    return frame;
  });
  for (let row = 0; row < of.length; row += 1) tree.of[row] = of[row] < 0 ? -1 : at[of[row]];
  const frames = tree.frames(new Float64Array(of.length), { countsBelow: false });
  weigh(frames, merged, at, first);
  addCallers(frames, merged, tops, last);
  return { ...frames, width: frames.total, callers: { first, names: names.length, merged, pairs, rowsThrough: (caller) => rowsThrough(frames, merged, tops, last, caller) } };
}

/** Gives the op and its callees their time. @param {import("./frames.js").Frames} frames @param {import("./frames.js").Frames} merged @param {Int32Array} at @param {number} first */
function weigh(frames, merged, at, first) {
  for (let frame = 0; frame < merged.size; frame += 1) if (at[frame] >= 0) frames.self[at[frame]] += merged.self[frame];
  frames.total.set(summed(frames.self.slice(0, first), frames.parent));
}

/** Gives callers the time and the number of the calls that came through them. @param {import("./frames.js").Frames} frames @param {import("./frames.js").Frames} merged @param {number[]} tops @param {number[]} last */
function addCallers(frames, merged, tops, last) {
  tops.forEach((top, index) => {
    let above = merged.parent[top];
    const path = pathTo(frames, last[index]);
    for (const caller of path) {
      frames.total[caller] += merged.total[top];
      frames.count[caller] += merged.count[top];
      const row = merged.row[above];
      if (row >= 0 && (frames.row[caller] < 0 || row < frames.row[caller])) frames.row[caller] = row;
      above = merged.parent[above];
    }
  });
}

/** Returns the callers from the op outwards to one of them. @param {import("./frames.js").Frames} frames @param {number} caller */
function pathTo({ parent }, caller) {
  const path = [];
  for (let frame = caller; parent[frame] >= 0; frame = parent[frame]) path.unshift(frame);
  return path;
}

/** @param {import("./frames.js").Frames} frames @param {import("./frames.js").Frames} merged @param {number[]} tops @param {number[]} last @param {number} caller */
function rowsThrough(frames, merged, tops, last, caller) {
  const isIn = new Uint8Array(merged.size);
  tops.forEach((top, index) => {
    if (pathTo(frames, last[index]).includes(caller)) isIn[top] = 1;
  });
  for (let frame = 0; frame < merged.size; frame += 1) if (merged.parent[frame] >= 0 && isIn[merged.parent[frame]]) isIn[frame] = 1;
  return Int32Array.from([...merged.of.keys()].filter((row) => merged.of[row] >= 0 && isIn[merged.of[row]]));
}
