// What of a row is to be drawn: boxes in view, with those below a pixel merged into runs.

/** Boxes from this width on are drawn for themselves, in pixels. */
const BOX = 1.5;

/** Boxes and runs to draw, in growing typed arrays. */
export class Runs {
  constructor() {
    this.count = 0;
    this.left = new Int32Array(4096);
    this.right = new Int32Array(4096);
    this.row = new Int32Array(4096);
    this.frame = new Int32Array(4096);
    this.category = new Uint8Array(4096);
  }

  /** @param {number} capacity */
  grow(capacity) {
    const { left, right, row, frame, category } = this;
    for (const [name, values] of Object.entries({ left, right, row, frame })) {
      const larger = new Int32Array(capacity);
      larger.set(values);
      Object.assign(this, { [name]: larger });
    }
    this.category = new Uint8Array(capacity);
    this.category.set(category);
  }

  /** Adds a box from pixel to pixel; frame -1 is a run of merged ones. @param {number} left @param {number} right @param {number} row @param {number} frame @param {number} category */
  add(left, right, row, frame, category) {
    const last = this.count - 1;
    if (frame < 0 && last >= 0 && this.frame[last] < 0 && this.row[last] === row && this.right[last] === left && this.category[last] === category) {
      this.right[last] = right;
      return;
    }
    if (this.count === this.left.length) this.grow(this.count * 2);
    this.left[this.count] = left;
    this.right[this.count] = right;
    this.row[this.count] = row;
    this.frame[this.count] = frame;
    this.category[this.count] = category;
    this.count += 1;
  }
}

/** Returns the first position from `from` on whose edge lies beyond a value, in big steps first. @param {Float64Array} edge ascending @param {number} from @param {number} to @param {number} value */
export function firstBeyond(edge, from, to, value) {
  let step = 1;
  let low = from;
  while (low + step < to && edge[low + step] <= value) {
    low += step;
    step *= 2;
  }
  let high = Math.min(low + step, to);
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (edge[middle] > value) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Returns the first position from `from` on whose frame ends beyond a value. @param {import("./layout.js").Rows} rows @param {number} from @param {number} to @param {number} value */
function firstEnding({ items, left, width }, from, to, value) {
  const endOf = (/** @type {number} */ index) => left[items[index]] + width[items[index]];
  let step = 1;
  let low = from;
  while (low + step < to && endOf(low + step) <= value) {
    low += step;
    step *= 2;
  }
  let high = Math.min(low + step, to);
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (endOf(middle) > value) high = middle;
    else low = middle + 1;
  }
  return low;
}

/**
 * Adds to `runs` what one row shows between two values of the axis on so many pixels.
 * @param {import("./layout.js").Rows} rows
 * @param {number} row
 * @param {{from: number, to: number, pixels: number}} view
 * @param {Uint8Array} category of each frame
 * @param {Runs} runs
 */
export function addVisible(rows, row, { from, to, pixels }, category, runs) {
  const { starts, items, left, width } = rows;
  const end = starts[row + 1];
  const scale = pixels / (to - from);
  let index = starts[row];
  if (index < end && left[items[index]] + width[items[index]] < from) index = firstEnding(rows, index, end, from);
  let next = 0;
  while (index < end && left[items[index]] <= to && next < pixels) {
    const frame = items[index];
    const a = Math.max(0, (left[frame] - from) * scale);
    const b = Math.min(pixels, (left[frame] + width[frame] - from) * scale);
    if (b - a >= BOX) {
      const first = Math.max(next, Math.round(a));
      next = Math.max(Math.round(b), first);
      if (next > first) runs.add(first, next, row, frame, category[frame]);
      index += 1;
    } else {
      const pixel = Math.min(Math.max(next, Math.floor(a)), pixels - 1);
      runs.add(pixel, pixel + 1, row, -1, category[frame]);
      next = pixel + 1;
      index = Math.max(index + 1, firstEnding(rows, index, end, from + next / scale));
    }
  }
}

/** Returns the frame at a value of the axis in a row, at most `slack` away; -1 if there is none. @param {import("./layout.js").Rows} rows @param {number} row @param {number} value @param {number} slack */
export function frameAt(rows, row, value, slack) {
  const { starts, items, left, width } = rows;
  if (row < 0 || row + 1 >= starts.length) return -1;
  const end = starts[row + 1];
  const index = firstEnding(rows, starts[row], end, value - slack);
  if (index >= end || left[items[index]] - value > slack) return -1;
  // The pointer may be near the end of one frame and inside of the next.
  const after = items[index + 1];
  const isPast = value > left[items[index]] + width[items[index]];
  return isPast && index + 1 < end && left[after] <= value ? after : items[index];
}
