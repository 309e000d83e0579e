// The part of the axis in view: zooming and panning within its ends.

/** @typedef {{from: number, to: number}} View */

/** Smallest part of the whole that can be seen, and smallest extent in microseconds. */
const SMALLEST = 1e-10;
const NANOSECOND = 1e-3;

/** Returns the nearest view that lies within the ends. @param {View} view @param {{min: number, max: number}} ends @returns {View} */
export function clamped({ from, to }, { min, max }) {
  const least = Math.min(Math.max((max - min) * SMALLEST, NANOSECOND), max - min);
  const extent = Math.min(Math.max(to - from, least), max - min);
  const middle = (from + to) / 2;
  const start = Math.min(Math.max(to - from === extent ? from : middle - extent / 2, min), max - extent);
  return { from: start, to: start + extent };
}

/** Zooms the view by a factor (above 1: nearer) about a value that stays where it is. @param {View} view @param {number} factor @param {number} about @param {{min: number, max: number}} ends */
export function zoomed({ from, to }, factor, about, ends) {
  return clamped({ from: about - (about - from) / factor, to: about + (to - about) / factor }, ends);
}

/** Moves the view by a fraction of itself. @param {View} view @param {number} fraction @param {{min: number, max: number}} ends */
export function panned({ from, to }, fraction, ends) {
  const by = Math.min(Math.max((to - from) * fraction, ends.min - from), ends.max - to);
  return { from: from + by, to: to + by };
}

/** Returns the view that a frame fills. @param {number} left @param {number} width @param {{min: number, max: number}} ends */
export function fitted(left, width, ends) {
  const least = Math.max(width, (ends.max - ends.min) * 1e-9);
  return clamped({ from: left, to: left + least }, ends);
}

/** Returns the nearest view in which a frame is at least `share` wide; the same view if it already is. @param {View} view @param {number} left @param {number} width @param {{min: number, max: number}} ends @param {number} [share] */
export function revealing(view, left, width, ends, share = 0.02) {
  const extent = view.to - view.from;
  const right = left + width;
  if (width > extent) return right <= view.from || left >= view.to ? fitted(left, width, ends) : view;
  if (width < extent * share) {
    const near = Math.max(width / share, (ends.max - ends.min) * 1e-9);
    return clamped({ from: left + width / 2 - near / 2, to: left + width / 2 + near / 2 }, ends);
  }
  if (left >= view.from && right <= view.to) return view;
  return clamped({ from: left + width / 2 - extent / 2, to: left + width / 2 + extent / 2 }, ends);
}

/** Interpolates between two views, `at` from 0 to 1. @param {View} start @param {View} end @param {number} at */
export function between(start, end, at) {
  const eased = 1 - (1 - at) ** 3;
  return { from: start.from + (end.from - start.from) * eased, to: start.to + (end.to - start.to) * eased };
}

/** Returns round values for ticks on the axis, at most `most`. @param {View} view @param {number} most */
export function ticks({ from, to }, most) {
  const raw = (to - from) / Math.max(most, 1);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((value) => value >= raw) ?? raw;
  const values = [];
  for (let index = Math.ceil(from / step); index * step <= to && values.length < 100; index += 1) values.push(index * step);
  return { step, values };
}
