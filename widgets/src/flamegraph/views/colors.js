// The category of each frame, by phase, op family or device.

import { familyOf } from "./families.js";
import { CATEGORIES, deviceCategories, SEVERAL } from "../../shared/picture/palette.js";

/** Most devices that get a category of their own; a code has to fit a byte. */
const MOST_DEVICES = 200;
const UNSEEN = 255;

/**
 * @param {import("../data/data.js").Trace} trace
 * @param {import("../data/frames.js").Frames} frames
 * @param {string} by phase, family or device
 * @returns {{categories: import("../../shared/picture/palette.js").Category[], codes: Uint8Array}}
 */
export function colored(trace, frames, by) {
  const devices = trace.strings.device.slice(0, MOST_DEVICES);
  const categories = by === "device" ? deviceCategories(devices) : CATEGORIES[by];
  const ofRow = ROW_CODES[by](trace, categories);
  return { categories, codes: frames.isTimeline ? ofRow : spread(frames, ofRow, categories.findIndex(({ label }) => label === SEVERAL)) };
}

/** @type {Record<string, (trace: import("../data/data.js").Trace, categories: import("../../shared/picture/palette.js").Category[]) => Uint8Array>} */
const ROW_CODES = {
  phase({ strings, columns }, categories) {
    const other = categories.findIndex(({ label }) => label === "other");
    const codes = strings.phase.map((phase) => categories.findIndex(({ label }) => label === phase)).map((code) => (code < 0 ? other : code));
    return mapped(columns.phase, codes, other);
  },
  device({ strings, columns }, categories) {
    return mapped(columns.device, strings.device.map((_, index) => Math.min(index, MOST_DEVICES - 1)), categories.length - 2);
  },
  family({ strings, columns, count }) {
    const { op, level } = columns;
    const byLevel = strings.level.map((name) => ({ name, codes: new Uint8Array(strings.op.length).fill(UNSEEN) }));
    const codes = new Uint8Array(count);
    for (let row = 0; row < count; row += 1) {
      const at = byLevel[level[row]];
      if (at.codes[op[row]] === UNSEEN) at.codes[op[row]] = familyOf(strings.op[op[row]], at.name);
      codes[row] = at.codes[op[row]];
    }
    return codes;
  },
};

/** @param {Int32Array} column @param {number[]} codes @param {number} missing */
function mapped(column, codes, missing) {
  const values = new Uint8Array(column.length);
  for (let row = 0; row < column.length; row += 1) values[row] = column[row] < 0 ? missing : codes[column[row]];
  return values;
}

/**
 * Returns the codes of merged frames: that of all rows inside, or `several`; a caller's is that of its own calls.
 * @param {import("../data/frames.js").Frames} frames @param {Uint8Array} ofRow @param {number} several @returns {Uint8Array}
 */
function spread({ size, of, parent, callers }, ofRow, several) {
  const codes = new Uint8Array(size).fill(UNSEEN);
  const merge = (/** @type {number} */ frame, /** @type {number} */ code) => {
    codes[frame] = codes[frame] === UNSEEN || codes[frame] === code ? code : several;
  };
  // A frame with rows of its own is colored by them; one that only holds others, by what it holds.
  for (let row = 0; row < of.length; row += 1) if (of[row] >= 0) merge(of[row], ofRow[row]);
  if (callers) {
    const ofMerged = spread(callers.merged, ofRow, several);
    for (const [caller, merged] of callers.pairs) merge(caller, ofMerged[merged]);
  }
  const isOwn = codes.map((code) => Number(code !== UNSEEN));
  for (let frame = size - 1; frame >= 0; frame -= 1) {
    const above = parent[frame];
    if (codes[frame] === UNSEEN) codes[frame] = several;
    if (above >= 0 && !isOwn[above]) merge(above, codes[frame]);
  }
  return codes;
}

/** Returns the self time of each category, and how many frames it has. @param {import("../data/frames.js").Frames} frames @param {Uint8Array} codes @param {number} length */
export function selfByCategory({ size, self }, codes, length) {
  const time = new Float64Array(length);
  const count = new Int32Array(length);
  for (let frame = 0; frame < size; frame += 1) {
    time[codes[frame]] += self[frame];
    count[codes[frame]] += 1;
  }
  return { time, count };
}

