// Numbers for the eye, in the words of nbkit/units.py.

import { fixed, whole } from "./numbers.js";

export const NULL = "—";
/** @type {[number, string][]} */
const DURATIONS = [[1e6, "s"], [1e3, "ms"], [1, "µs"]];
/** @type {[number, string][]} */
const SIZES = [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]];
/** @type {[number, string][]} */
const FLOPS = [[1e12, "TFLOP"], [1e9, "GFLOP"], [1e6, "MFLOP"], [1e3, "kFLOP"]];

/** Formats a value in the largest unit that rounding reaches; undefined below all. @param {number} value @param {[number, string][]} units */
function inUnits(value, units) {
  for (const [factor, unit] of units) {
    if (Math.abs(value) >= factor * 0.9995) return `${threeDigits(value / factor)} ${unit}`;
  }
  return undefined;
}

/** @param {number} value */
function threeDigits(value) {
  const size = Math.abs(value);
  return fixed(value, size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

/** @param {number | null | undefined} value */
function isUnknown(value) {
  return value === null || value === undefined || Number.isNaN(value);
}

/** Formats microseconds as '12.3 ms'. @param {number} us */
export function duration(us) {
  if (isUnknown(us)) return NULL;
  return inUnits(us, DURATIONS) ?? (us === 0 ? "0 µs" : `${fixed(us, 2)} µs`);
}

/** Formats microseconds with their sign: '+1.20 ms'. @param {number} us */
export function change(us) {
  return us > 0 ? `+${duration(us)}` : duration(us).replace("-", "−");
}

/** Formats bytes as '12.3 MiB'. @param {number} bytes */
export function dataSize(bytes) {
  return isUnknown(bytes) ? NULL : inUnits(bytes, SIZES) ?? `${whole(bytes)} B`;
}

/** Formats floating-point operations as '1.23 GFLOP'. @param {number} value */
export function flops(value) {
  return isUnknown(value) ? NULL : inUnits(value, FLOPS) ?? `${whole(value)} FLOP`;
}

/** Formats a fraction 0..1 as '12.3 %'. @param {number} fraction */
export function share(fraction) {
  return isUnknown(fraction) ? NULL : `${fixed(100 * fraction, 1)} %`;
}

/** Counts a noun: '1 op', '12,345 ops'. @param {number} value @param {string} noun */
export function counted(value, noun) {
  return `${value.toLocaleString("en")} ${noun}${value === 1 ? "" : noun.endsWith("tch") ? "es" : "s"}`;
}
