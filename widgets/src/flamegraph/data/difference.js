// The difference of two merged views: each frame beside the one at the same path before.

import { summed } from "./merge.js";
import { PairMap } from "./pair_map.js";
import { verdictsOf } from "./verdicts.js";

/** Codes, in the order of the palette. */
export const SAME = 0;
export const SLOWER = 1;
export const FASTER = 2;
export const ADDED = 3;
export const REMOVED = 4;
/**
 * @typedef {object} Difference
 * @property {import("./frames.js").Frames} frames those of now, then those that were removed (drawn at their former width)
 * @property {Float64Array} before total before, 0 for new frames
 * @property {Float64Array} selfBefore
 * @property {Int32Array} countBefore
 * @property {Uint8Array} codes
 * @property {import("./verdicts.js").Verdicts | null} verdicts null where the noise is not known
 */

/**
 * @param {import("./frames.js").Frames} now
 * @param {import("./frames.js").Frames} base
 * @param {import("./data.js").Noise} noise
 * @param {string} view grouping and clock, as the noise names them
 * @returns {Difference}
 */
export function difference(now, base, noise, view) {
  const union = unite(now, base);
  const { size, parent, name, names, texts, kinds, at } = union;
  const self = extended(now.self, size);
  const total = extended(now.total, size);
  const before = placed(base.total, at, size);
  const selfBefore = placed(base.self, at, size);
  const countBefore = Int32Array.from(placed(base.count, at, size));
  const own = self.slice();
  for (let frame = now.size; frame < size; frame += 1) own[frame] = selfBefore[frame];
  const frames = {
    size, parent, name, names, texts, kinds, self, total, width: summed(own, parent), of: now.of, isTimeline: false,
    count: Int32Array.from(extended(now.count, size)), row: filled(now.row, size, -1),
  };
  const isBefore = new Uint8Array(size);
  for (const frame of at) isBefore[frame] = 1;
  const verdicts = noise.views[view] ? verdictsOf(now, noise.views[view]) : null;
  const codeOf = verdicts ? (/** @type {number} */ frame) => verdictCode(verdicts, frame) : singleCode(total, before, noise);
  const codes = Uint8Array.from(total, (_, frame) => (frame >= now.size ? REMOVED : isBefore[frame] ? codeOf(frame) : ADDED));
  return { frames, before, selfBefore, countBefore, codes, verdicts };
}

/** Merges the frames of both; `at` says where each of the base's frames is. @param {import("./frames.js").Frames} now @param {import("./frames.js").Frames} base */
function unite(now, base) {
  const { names, texts, kinds, nameOf } = uniteNames(now, base);
  const children = new PairMap(now.size);
  for (let frame = 0; frame < now.size; frame += 1) children.set(now.parent[frame], now.name[frame], frame);
  const [parents, ids] = [[...now.parent], [...now.name]];
  const at = new Int32Array(base.size);
  for (let frame = 0; frame < base.size; frame += 1) {
    const above = base.parent[frame] < 0 ? -1 : at[base.parent[frame]];
    at[frame] = children.get(above, nameOf[base.name[frame]]);
    if (at[frame] >= 0) continue;
    at[frame] = parents.push(above) - 1;
    ids.push(nameOf[base.name[frame]]);
  }
  return { size: parents.length, parent: Int32Array.from(parents), name: Int32Array.from(ids), names, texts, kinds, at };
}

/** Merges the names of both; `nameOf` says which each of the base's names is. @param {import("./frames.js").Frames} now @param {import("./frames.js").Frames} base */
function uniteNames(now, base) {
  const [names, texts, kinds] = [[...now.names], [...now.texts], [...now.kinds]];
  const known = new Map(texts.map((_, index) => [nameKey(now, index), index]));
  const nameOf = base.texts.map((text, index) => {
    const at = known.get(nameKey(base, index));
    if (at !== undefined) return at;
    names.push(base.names[index]);
    kinds.push(base.kinds[index]);
    return texts.push(text) - 1;
  });
  return { names, texts, kinds, nameOf };
}

/** Keys a name by its kind: a module and an op may have the same. @param {import("./frames.js").Frames} frames @param {number} index */
const nameKey = ({ kinds, names, texts }, index) => `${kinds[index]}\n${names[index]}\n${texts[index]}`;

/** @param {Float64Array | Int32Array} values @param {number} size */
function extended(values, size) {
  const larger = new Float64Array(size);
  larger.set(values);
  return larger;
}

/** @param {Int32Array} values @param {number} size @param {number} rest */
function filled(values, size, rest) {
  const larger = new Int32Array(size).fill(rest);
  larger.set(values);
  return larger;
}

/** @param {Float64Array | Int32Array} values @param {Int32Array} at @param {number} size */
function placed(values, at, size) {
  const result = new Float64Array(size);
  at.forEach((frame, index) => {
    result[frame] += values[index];
  });
  return result;
}

/** Tells whether a frame is slower or faster by more than the noise. @param {import("./verdicts.js").Verdicts} verdicts @param {number} frame */
function verdictCode({ change, noise }, frame) {
  if (!(Math.abs(change[frame]) > noise[frame])) return SAME;
  return change[frame] > 0 ? SLOWER : FASTER;
}

/** Judges single recordings by how much equal runs hardly ever differ. @param {Float64Array} total @param {Float64Array} before @param {{factor: number, share: number}} single */
function singleCode(total, before, { factor, share }) {
  const small = share * total.reduce((most, value) => Math.max(most, value), 0);
  return (/** @type {number} */ frame) => {
    const [now, then] = [total[frame], before[frame]];
    if (Math.abs(now - then) <= small || Math.max(now, then) < factor * Math.min(now, then)) return SAME;
    return now > then ? SLOWER : FASTER;
  };
}
