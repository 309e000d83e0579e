// Cells of a table as text, as in nbkit/views/op_table/rows.py and diff_rows.py.

import { whole } from "../../shared/numbers.js";
import { dataSize, duration, flops } from "../../shared/units.js";
import { textAt, textColumn } from "./columns.js";
import { ROOT, shown } from "./words.js";

/** What a report names its formats by. @type {Record<string, (value: number) => string>} */
const FORMATS = { duration, flops, data_size: dataSize };

/** One cell of the op table; null where the value is missing. @param {any} table @param {Record<string, string>} formats @param {number} row @param {string} name */
export function opCell(table, formats, row, name) {
  const texts = textColumn(table, name);
  if (texts) return textCell(texts, row, name);
  const value = table.numbers[name][row];
  return Number.isNaN(value) ? null : (FORMATS[formats[name]] ?? whole)(value);
}

/** A cell of text. @param {import("./columns.js").TextColumn} texts @param {number} row @param {string} name */
export function textCell(texts, row, name) {
  const text = textAt(texts, row);
  return text === null ? null : name === "module" && text === "" ? ROOT : shown(text);
}
