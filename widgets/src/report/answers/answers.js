// What the answers of all tables have in common: their pages, and an answer whatever goes wrong.

import { OptionError } from "../columns/errors.js";
import { quoted } from "../columns/words.js";

const UTF8 = new TextEncoder();

/**
 * From a message of the front end to its answer, with its id; kind "error" where it asks for what is not there.
 * @param {string} table what it is called
 * @param {Record<string, (message: any) => object>} kinds what answers each kind of question
 * @returns {(message: any) => any}
 */
export function answerer(table, kinds) {
  return (message) => {
    const { kind = null, id = null } = message;
    try {
      if (!Object.hasOwn(kinds, kind)) throw new OptionError(`The ${table} knows no question ${kind === null ? "None" : quoted(String(kind))}.`);
      return { kind, id, ...kinds[kind](message) };
    } catch (error) {
      return { kind: "error", id, message: `${/** @type {Error} */ (error).name}: ${/** @type {Error} */ (error).message}` };
    }
  };
}

/** What a function gave for the last few arguments. @template T @param {(text: string) => T} find @param {number} [most] @returns {(text: string) => T} */
export function remembered(find, most = 4) {
  /** @type {Map<string, T>} */
  const found = new Map();
  return (text) => {
    const value = found.has(text) ? /** @type {T} */ (found.get(text)) : find(text);
    found.delete(text);
    found.set(text, value);
    if (found.size > most) found.delete(/** @type {string} */ (found.keys().next().value));
    return value;
  };
}

/** First and last but one place of the page that a message asks for. @param {any} message @param {number} most @returns {[number, number]} */
export function pageOf(message, most) {
  const start = Math.max(whole(message.offset ?? 0), 0);
  return [start, start + Math.min(whole(message.limit ?? most), most)];
}

/** The first rows whose JSON stays under the limit, but at least one. `decimals` is the place of a decimal fraction. @param {any[][]} rows @param {number} limitBytes @param {number} decimals */
export function withinBytes(rows, limitBytes, decimals) {
  let size = 0;
  let count = 0;
  for (; count < rows.length; count += 1) {
    size += sizeOf(rows[count], decimals) + 1;
    if (size > limitBytes) break;
  }
  return rows.slice(0, Math.max(count, 1));
}

/** A page of the module tree, whose rows were made when the report was. @param {any} state @param {any} message */
export function modulePage({ modules, pages }, message) {
  const [start, end] = pageOf(message, pages.modules);
  const rows = withinBytes(modules.rows.slice(start, end), pages.bytes, -1);
  return { offset: start, total: modules.rows.length, rows, outside: modules.outside };
}

/** An id within a table. Raises OptionError otherwise. @param {any} value @param {number} count @param {string} noun */
export function knownId(value, count, noun) {
  const id = whole(value);
  if (id >= 0 && id < count) return id;
  throw new OptionError(`There is no ${noun} ${id}; the last one is ${count - 1}.`);
}

/** Bytes of a row as JSON of Python: blanks after commas, and ".0" after a fraction that is whole. @param {any[]} row @param {number} decimals */
function sizeOf(row, decimals) {
  const fraction = row.at(decimals);
  return UTF8.encode(JSON.stringify(row)).length + row.length - 1 + (Number.isInteger(fraction) ? 2 : 0);
}

/** @param {any} value */
function whole(value) {
  if (typeof value === "number" && Number.isFinite(value)) return Math.trunc(value);
  throw new TypeError(`${value} is not a whole number`);
}
