// Which rows fit the predicates of a query: the report's executor; nbkit/analysis/query/predicates.py is the kernel's.

import { numberColumn, textColumn } from "../columns/columns.js";

/**
 * @typedef {import("../../table/query/filter_text.js").Predicate} Predicate
 * @typedef {import("../columns/columns.js").Columns} Columns
 */

/** @type {Record<string, (predicate: any) => (text: string) => boolean>} */
const TEXT_OPS = {
  equals: ({ value }) => (text) => text === value,
  in: ({ value }) => (text) => value.includes(text),
  contains: ({ value }) => matching(value.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"), true),
  regex: ({ value, ignore_case: isCaseless }) => matching(value, isCaseless),
  inside: ({ value }) => (text) => !value || text === value || text.startsWith(`${value}.`),
};
/** @type {Record<string, (value: number) => (number: number) => boolean>} */
const NUMBER_OPS = {
  equals: (value) => (number) => number === value,
  below: (value) => (number) => number < value,
  at_most: (value) => (number) => number <= value,
  above: (value) => (number) => number > value,
  at_least: (value) => (number) => number >= value,
};

/** Returns 1 for each row that fits all predicates, else 0. Throws on a column or op that is not known. @param {Columns} columns @param {Predicate[]} predicates */
export function maskOf(columns, predicates) {
  return fits(columns, { all: predicates });
}

/** @param {Columns} columns @param {any} predicate @returns {Uint8Array} */
function fits(columns, predicate) {
  const { any, all, not } = predicate;
  const mask = any ? combined(columns, any, 1) : all ? combined(columns, all, 0) : columnFits(columns, predicate);
  return not ? mask.map((isFitting) => 1 - isFitting) : mask;
}

/** Combines predicates of which one decides a row: for `any` that it fits, for `all` that it does not. @param {Columns} columns @param {Predicate[]} parts @param {0 | 1} decisive */
function combined(columns, parts, decisive) {
  const mask = new Uint8Array(columns.count).fill(1 - decisive);
  for (const part of parts) {
    const partial = fits(columns, part);
    for (let row = 0; row < mask.length; row += 1) if (partial[row] === decisive) mask[row] = decisive;
  }
  return mask;
}

/** @param {Columns} columns @param {any} predicate */
function columnFits(columns, predicate) {
  const mask = new Uint8Array(columns.count);
  const texts = textColumn(columns, predicate.column);
  if (texts) {
    const isFitting = textsThatFit(texts.values, predicate);
    // Code -1, a missing text, is the last one.
    for (let row = 0; row < mask.length; row += 1) mask[row] = isFitting.at(texts.codes[row]) ?? 0;
  } else {
    const values = numberColumn(columns, predicate.column);
    const test = predicate.op === "null" ? Number.isNaN : known(NUMBER_OPS, predicate.op)(predicate.value);
    for (let row = 0; row < mask.length; row += 1) mask[row] = Number(test(values[row]));
  }
  return mask;
}

/** Returns 1 for each text that fits, else 0, and last the same for a missing text. @param {string[]} values @param {any} predicate */
function textsThatFit(values, predicate) {
  if (predicate.op === "null") return Uint8Array.from([...values.map(() => 0), 1]);
  const test = known(TEXT_OPS, predicate.op)(predicate);
  return Uint8Array.from([...values.map((text) => Number(test(text))), 0]);
}

/** @param {string} pattern @param {boolean} isCaseless */
function matching(pattern, isCaseless) {
  const expression = new RegExp(pattern, isCaseless ? "iu" : "u");
  return (/** @type {string} */ text) => expression.test(text);
}

/** @template T @param {Record<string, T>} ops @param {string} op @returns {T} */
function known(ops, op) {
  if (Object.hasOwn(ops, op)) return ops[op];
  throw new Error(`A column of this kind knows no ${op}.`);
}
