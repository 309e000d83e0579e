// A slider of thresholds: step 0 asks for nothing, the others run evenly over the logarithm of the values.

/** Steps after the first. */
export const STEPS = 60;

/** @typedef {{low: number, high: number}} Scale smallest and largest value, both above 0 */

/** Returns the threshold at a step; null at step 0. Two digits, as it is read. @param {number} step @param {Scale} scale @returns {number | null} */
export function thresholdAt(step, { low, high }) {
  if (step <= 0) return null;
  const share = (Math.min(step, STEPS) - 1) / (STEPS - 1);
  const exact = low * (high / low) ** share;
  // Rounded down, so that the last place still shows the largest value.
  return roundedDown(exact);
}

/** Returns the step nearest to a threshold. @param {number | null | undefined} threshold @param {Scale} scale */
export function stepOf(threshold, scale) {
  if (threshold === null || threshold === undefined) return 0;
  return 1 + Math.round(shareAt(threshold, scale) * (STEPS - 1));
}

/** Returns where a value lies between the ends, from 0 to 1, as a share of the logarithms. @param {number} value @param {Scale} scale */
export function shareAt(value, { low, high }) {
  return high > low ? Math.max(0, Math.min(Math.log(value / low) / Math.log(high / low), 1)) : 0;
}

/** Formats a threshold. @param {number | null | undefined} threshold */
export function thresholdText(threshold) {
  if (threshold === null || threshold === undefined) return "any";
  const size = Math.abs(threshold);
  return `≥ ${size >= 1e4 || size < 1e-2 ? threshold.toExponential(1) : String(threshold)}`;
}

/** @param {number} value */
function roundedDown(value) {
  const unit = 10 ** (Math.floor(Math.log10(value)) - 1);
  const digits = Math.floor(value / unit + 1e-9);
  return Number((digits * unit).toPrecision(2));
}
