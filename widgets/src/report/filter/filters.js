// Filter texts of a table over its values, as nbkit/analysis/query/filters.py has them.

import { PatternError } from "../columns/errors.js";
import { expression } from "./expressions.js";
import { globExpression, itself } from "./globs.js";
import { quoted, stripped } from "../columns/words.js";

/** @typedef {string | null} Text */

const NUMBER = /^(-?[0-9]+(?:\.[0-9]*)?(?:e[+-]?[0-9]+)?|-?\.[0-9]+)\s*([a-zµ]*)$/iu;
const COMPARISON = /^(!=|<=|>=|<|>|=|)\s*([^]*)$/;
/** @type {Record<string, (value: number, other: number) => boolean>} */
const COMPARE = {
  "": (value, other) => value === other, "=": (value, other) => value === other, "!=": (value, other) => value !== other,
  "<": (value, other) => value < other, "<=": (value, other) => value <= other, ">": (value, other) => value > other, ">=": (value, other) => value >= other,
};
/** @type {Record<string, number>} */
const TIME_UNITS = { "": 1, us: 1, "µs": 1, ms: 1e3, s: 1e6 };
/** @type {Record<string, number>} */
const MULTIPLES = { "": 1, k: 1e3, m: 1e6, g: 1e9, t: 1e12 };

/** Whether a text, or null, fits a filter text. Raises PatternError on a bad one. @param {string} filter @returns {(text: Text) => boolean} */
export function textTest(filter) {
  const wanted = stripped(filter);
  if (wanted.startsWith("!")) {
    const test = textTest(wanted.slice(1));
    return (text) => !test(text);
  }
  if (wanted.toLowerCase() === "null") return (text) => text === null;
  if (wanted.startsWith("=")) {
    const exact = stripped(wanted.slice(1));
    return (text) => text === exact;
  }
  if (wanted.startsWith("re:")) return fits(expression(wanted.slice(3)));
  return /[*?]/.test(wanted) ? fits(globExpression(wanted)) : contains(wanted);
}

/** Whether a text contains another one, in any case. @param {string} part @returns {(text: Text) => boolean} */
export function contains(part) {
  return fits(new RegExp([...part].map(itself).join(""), "iu"));
}

/** Whether a number, NaN for missing, fits a filter text. Raises PatternError on a bad one. @param {string} filter @param {boolean} isTime @returns {(value: number) => boolean} */
export function numberTest(filter, isTime) {
  const wanted = stripped(filter);
  if (/^!?null$/i.test(wanted)) {
    const isNegated = wanted.startsWith("!");
    return (value) => Number.isNaN(value) !== isNegated;
  }
  const units = isTime ? TIME_UNITS : MULTIPLES;
  const dots = wanted.indexOf("..");
  if (dots >= 0) {
    const [low, high] = [wanted.slice(0, dots), wanted.slice(dots + 2)].map((text) => number(text, units));
    return (value) => value >= low && value <= high;
  }
  const [, sign, text] = /** @type {RegExpExecArray} */ (COMPARISON.exec(wanted));
  const other = number(text, units);
  return (value) => COMPARE[sign](value, other);
}

/** @param {string} text @param {Record<string, number>} units */
function number(text, units) {
  const plain = stripped(text);
  const [, digits, unit] = NUMBER.exec(plain) ?? [];
  const factor = digits === undefined ? undefined : units[unit.toLowerCase()];
  if (factor === undefined) {
    const known = Object.keys(units).filter(Boolean).join(", ");
    throw new PatternError(`${quoted(plain)} is not a number; write >5, <=2, 3..8 or null, with a unit of ${known}.`);
  }
  return Number(digits) * factor;
}

/** @param {RegExp} pattern @returns {(text: Text) => boolean} */
function fits(pattern) {
  return (text) => text !== null && pattern.test(text);
}
