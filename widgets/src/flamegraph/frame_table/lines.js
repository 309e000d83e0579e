// The frame table: the frames of a view added up by name, filtered by zoom and search, sorted.

import { changeText } from "../views/describe.js";
import { SAME } from "../data/difference.js";
import { differenceCategories } from "../../shared/picture/palette.js";

/**
 * @typedef {{name: number, count: number, self: number, total: number, largest: number,
 *   countBefore: number, selfBefore: number, totalBefore: number, frames: number[]}} Line
 *   `largest` is the frame of that name with the most time; a frame in one of its own name adds nothing to total;
 *   `frames` counts the frames by their code in a difference
 */

/**
 * Makes one line for each name in a frame and below it, or in all for -1.
 * @param {import("../data/frames.js").Frames} frames
 * @param {import("../data/links.js").Links} links
 * @param {{top: number, isMatch: Uint8Array | null, difference: import("../data/difference.js").Difference | null}} filter
 * @returns {Line[]}
 */
export function lines(frames, links, { top, isMatch, difference }) {
  const sums = new Sums(frames, difference);
  const next = new Int32Array(frames.size);
  /** @type {number[]} */
  const open = [];
  const enter = (/** @type {number} */ frame) => {
    if (!isMatch || isMatch[frame]) sums.add(frame);
    sums.inside[frames.name[frame]] += 1;
    open.push(frame);
  };
  for (const start of top < 0 ? links.roots : [top]) {
    enter(start);
    while (open.length) {
      const frame = open[open.length - 1];
      const at = links.first[frame + 1] + next[frame];
      if (at < links.first[frame + 2]) {
        next[frame] += 1;
        enter(links.items[at]);
      } else {
        sums.inside[frames.name[frame]] -= 1;
        open.pop();
      }
    }
  }
  return sums.lines();
}

class Sums {
  /** @param {import("../data/frames.js").Frames} frames @param {import("../data/difference.js").Difference | null} difference */
  constructor(frames, difference) {
    this.frames = frames;
    this.difference = difference;
    this.inside = new Int32Array(frames.names.length);
    /** @type {(Line | undefined)[]} */
    this.byName = new Array(frames.names.length);
  }

  /** @param {number} frame */
  add(frame) {
    const { name: names, self, total, count } = this.frames;
    const name = names[frame];
    const line = (this.byName[name] ??= { name, count: 0, self: 0, total: 0, largest: frame, countBefore: 0, selfBefore: 0, totalBefore: 0, frames: [0, 0, 0, 0, 0] });
    const isOutermost = this.inside[name] === 0;
    line.count += count[frame];
    line.self += self[frame];
    if (isOutermost) line.total += total[frame];
    if (total[frame] > total[line.largest]) line.largest = frame;
    if (!this.difference) return;
    line.frames[this.difference.codes[frame]] += 1;
    line.countBefore += this.difference.countBefore[frame];
    line.selfBefore += this.difference.selfBefore[frame];
    if (isOutermost) line.totalBefore += this.difference.before[frame];
  }

  /** @returns {Line[]} */
  lines() {
    return /** @type {Line[]} */ (this.byName.filter(Boolean));
  }
}

/** What a column sorts by. @type {Record<string, (line: Line, names: string[]) => number | string>} */
export const KEYS = {
  name: (line, names) => names[line.name].toLowerCase(),
  count: (line) => line.count,
  self: (line) => line.self,
  total: (line) => line.total,
  before: (line) => line.selfBefore,
  change: (line) => Math.abs(line.self - line.selfBefore),
  // What changed first, then by how much.
  status: (line) => (line.frames[SAME] < sum(line.frames) ? 1e15 : 0) + Math.abs(line.self - line.selfBefore),
};

/** @param {number[]} values */
const sum = (values) => values.reduce((all, value) => all + value, 0);

/** Words what changed in the frames of a line: in full for one frame, as counts for several. @param {Line} line @param {import("../data/difference.js").Difference} difference */
export function statusText({ frames, largest }, difference) {
  const count = sum(frames);
  if (count === 1) return changeText({ difference, frame: largest });
  const changed = differenceCategories(difference.verdicts !== null).map(({ label }, code) => (code !== SAME && frames[code] ? `${frames[code]} ${label}` : ""));
  const noise = difference.verdicts ? "" : ", noise unknown";
  if (frames[SAME] === count) return difference.verdicts ? "all within noise" : `no clear change${noise}`;
  const all = frames.findIndex((value) => value === count);
  return all > 0 ? `all ${count} ${differenceCategories(true)[all].label}${noise}` : `${changed.filter(Boolean).join(", ")} of ${count} frames${noise}`;
}

/** Sorts lines; equal ones by name. @param {Line[]} list @param {string[]} names @param {{column: string, isDescending: boolean}} sort */
export function sorted(list, names, { column, isDescending }) {
  const key = KEYS[column];
  const keyed = list.map((line) => ({ line, key: key(line, names), name: names[line.name] }));
  const sign = isDescending ? -1 : 1;
  keyed.sort((a, b) => (a.key < b.key ? -sign : a.key > b.key ? sign : a.name < b.name ? -1 : 1));
  return keyed.map(({ line }) => line);
}

