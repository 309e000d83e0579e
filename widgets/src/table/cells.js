// Raw cells as text; this one place formats what tables show, in the notebook and in a report.

import { ROOT, shown } from "../shared/names.js";
import { general, whole } from "../shared/numbers.js";
import { dataSize, duration, flops, share } from "../shared/units.js";

/** @typedef {import("./query/filter_text.js").Kind} Kind */

/** @type {Record<string, (value: number) => string>} */
const FORMATS = { time: duration, bytes: dataSize, flops, whole, share, metric: (value) => general(value, 3) };

/** Formats a cell; null where it is missing. @param {string} name of the column @param {Kind} kind @param {any} cell @param {number} [limit] characters of a text */
export function cellText(name, kind, cell, limit) {
  if (isMissing(cell)) return null;
  if (kind === "text") return name === "module" && cell === "" ? ROOT : shown(String(cell), limit);
  return FORMATS[kind](numberOf(cell));
}

/** Returns the number of a raw cell: JSON has no infinite ones, so that they come as texts. @param {any} cell */
export function numberOf(cell) {
  return isMissing(cell) ? NaN : Number(cell);
}

/** @param {any} cell */
function isMissing(cell) {
  return cell === null || cell === undefined || Number.isNaN(cell);
}
