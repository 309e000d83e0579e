// Memory over time: the least and the most of each pixel column, from events however many.

import { firstBeyond } from "./visible.js";

/** Events that one stored least and most stand for. */
const BLOCK = 256;

/** Makes a curve of steps with its blocks. @param {{device: string, time: Float64Array, allocated: Float64Array}} events */
export function memoryCurve({ device, time, allocated }) {
  const blocks = Math.ceil(time.length / BLOCK);
  const least = new Float64Array(blocks).fill(Infinity);
  const most = new Float64Array(blocks).fill(-Infinity);
  let [peak, peakTime] = [-Infinity, 0];
  for (let event = 0; event < allocated.length; event += 1) {
    const block = Math.floor(event / BLOCK);
    const value = allocated[event];
    if (value < least[block]) least[block] = value;
    if (value > most[block]) most[block] = value;
    if (value > peak) [peak, peakTime] = [value, time[event]];
  }
  return { device, time, allocated, least, most, peak: time.length ? peak : 0, peakTime };
}

/** @typedef {ReturnType<typeof memoryCurve>} Curve */

/** Returns the bytes held at a time; 0 before the first event. @param {Curve} curve @param {number} time */
export function bytesAt({ time: times, allocated }, time) {
  const index = firstBeyond(times, 0, times.length, time) - 1;
  return index < 0 ? 0 : allocated[index];
}

/** Returns the least and most of each pixel column in view. @param {Curve} curve @param {import("./camera.js").View} view @param {number} pixels */
export function columnsInView(curve, { from, to }, pixels) {
  const low = new Float64Array(pixels);
  const high = new Float64Array(pixels);
  const { time } = curve;
  let index = firstBeyond(time, 0, time.length, from);
  let held = index ? curve.allocated[index - 1] : 0;
  for (let pixel = 0; pixel < pixels; pixel += 1) {
    const end = firstBeyond(time, index, time.length, from + ((pixel + 1) / pixels) * (to - from));
    const range = extremes(curve, index, end);
    low[pixel] = Math.min(held, range.least);
    high[pixel] = Math.max(held, range.most);
    if (end > index) held = curve.allocated[end - 1];
    index = end;
  }
  return { low, high };
}

/** @param {Curve} curve @param {number} from @param {number} to */
function extremes({ allocated, least, most }, from, to) {
  let [low, high] = [Infinity, -Infinity];
  for (let event = from; event < to; ) {
    if (event % BLOCK === 0 && event + BLOCK <= to) {
      low = Math.min(low, least[event / BLOCK]);
      high = Math.max(high, most[event / BLOCK]);
      event += BLOCK;
    } else {
      low = Math.min(low, allocated[event]);
      high = Math.max(high, allocated[event]);
      event += 1;
    }
  }
  return { least: low, most: high };
}
