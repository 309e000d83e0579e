// What a person types over a column becomes predicates: plain JSON that the kernel and the report execute alike.
//
// Texts: `mm` is contained (any case), `=mm` is the whole text, `a*b` a glob (any case, fits up to the end), `re:x` a regular
// expression, `null` is missing, `!` in front turns it around. Numbers: `>5`, `<=5`, `5`, `!=5`, `2..8` (both ends in),
// `null`, `!null`, with a unit of the column. A regular expression is JavaScript's (with its flag u), as far as the kernel
// knows the same one: pandas runs RE2, and Python's re where that looks around or back. What JavaScript refuses is said
// here, what the kernel refuses is said by its answer, both at the field.

import { globPattern } from "./glob.js";

/**
 * @typedef {{column: string, op: string, value?: any, ignore_case?: boolean, not?: boolean}} Comparison
 * @typedef {Comparison | {any: Predicate[], not?: boolean} | {all: Predicate[], not?: boolean}} Predicate
 * @typedef {"text" | "time" | "bytes" | "flops" | "whole" | "share" | "metric"} Kind what a column holds
 */

export class FilterError extends Error {}

const NUMBER = /^(-?\d+(?:\.\d*)?(?:e[+-]?\d+)?|-?\.\d+)\s*([a-zµμ%]*)$/i;
const COMPARISON = /^(!=|<=|>=|<|>|=|)\s*([^]*)$/;
/** @type {Record<string, string>} */
const OPS = { "": "equals", "=": "equals", "!=": "equals", "<": "below", "<=": "at_most", ">": "above", ">=": "at_least" };
const TIMES = { us: 1, µs: 1, ms: 1e3, s: 1e6 };
const SIZES = { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40, kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12, k: 1e3, M: 1e6, G: 1e9, T: 1e12 };
/** A share is 0 to 1, and written in percent. */
const SHARES = { "": 0.01, "%": 0.01 };
const MULTIPLES = { k: 1e3, M: 1e6, G: 1e9, T: 1e12 };
const CASELESS = "(?i)";

/** Returns the predicate of a filter text; null for blanks. Throws FilterError with what is wrong. @param {string} column @param {Kind} kind @param {string} text @returns {Predicate | null} */
export function parsed(column, kind, text) {
  const wanted = text.trim();
  if (!wanted) return null;
  return kind === "text" ? ofText(column, wanted) : ofNumber(column, wanted, unitsOf(kind));
}

/** @param {string} column @param {string} wanted @returns {Comparison} */
function ofText(column, wanted) {
  if (wanted.startsWith("!")) {
    const { not, ...inside } = ofText(column, wanted.slice(1).trim());
    return not ? inside : { ...inside, not: true };
  }
  if (wanted.toLowerCase() === "null") return { column, op: "null" };
  if (wanted.startsWith("=")) return { column, op: "equals", value: wanted.slice(1).trim() };
  if (wanted.startsWith("re:")) return expression(column, wanted.slice(3));
  if (/[*?]/.test(wanted)) return { column, op: "regex", value: checked(globPattern(wanted), wanted, "pattern"), ignore_case: true };
  return { column, op: "contains", value: wanted };
}

/** @param {string} column @param {string} text @returns {Comparison} */
function expression(column, text) {
  const isCaseless = text.startsWith(CASELESS);
  const value = checked(isCaseless ? text.slice(CASELESS.length) : text, text, "regular expression");
  return isCaseless ? { column, op: "regex", value, ignore_case: true } : { column, op: "regex", value };
}

/** Checks that a text is a regular expression and returns it. @param {string} value @param {string} text what was typed for it @param {string} noun */
function checked(value, text, noun) {
  try {
    new RegExp(value, "u");
    return value;
  } catch (error) {
    const reason = /** @type {Error} */ (error).message.split(": ").at(-1);
    throw new FilterError(`'${text}' is not a ${noun}: ${reason}; correct it${noun === "pattern" ? "" : " or leave 're:' out"}.`);
  }
}

/** @param {string} column @param {string} wanted @param {Record<string, number>} units @returns {Predicate} */
function ofNumber(column, wanted, units) {
  if (/^!?null$/i.test(wanted)) return wanted.startsWith("!") ? { column, op: "null", not: true } : { column, op: "null" };
  const dots = wanted.indexOf("..");
  if (dots >= 0) {
    const [low, high] = [wanted.slice(0, dots), wanted.slice(dots + 2)].map((text) => number(text, units));
    return { all: [{ column, op: "at_least", value: low }, { column, op: "at_most", value: high }] };
  }
  const [, sign, text] = /** @type {RegExpExecArray} */ (COMPARISON.exec(wanted));
  const comparison = { column, op: OPS[sign], value: number(text, units) };
  return sign === "!=" ? { ...comparison, not: true } : comparison;
}

/** @param {string} text @param {Record<string, number>} units */
function number(text, units) {
  const [, digits, unit] = NUMBER.exec(text.trim()) ?? [];
  const name = Object.keys(units).find((known) => known.toLowerCase() === unit?.toLowerCase().replace("μ", "µ"));
  if (digits === undefined || (unit && name === undefined)) {
    throw new FilterError(`'${text.trim()}' is not a number; write >5, <=2, 3..8 or null, with a unit of ${Object.keys(units).filter(Boolean).join(", ")}.`);
  }
  return Number(digits) * (name === undefined ? 1 : units[name]);
}

/** @param {Kind} kind @returns {Record<string, number>} */
function unitsOf(kind) {
  return kind === "time" ? TIMES : kind === "bytes" ? SIZES : kind === "share" ? SHARES : MULTIPLES;
}
