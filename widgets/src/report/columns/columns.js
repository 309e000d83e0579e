// A table's columns: texts as codes with their different values, numbers with NaN for missing.

import { OptionError } from "./errors.js";

/**
 * @typedef {{values: string[], codes: Int32Array}} TextColumn code -1 is missing
 * @typedef {{count: number, texts: Record<string, TextColumn>, numbers: Record<string, Float64Array>}} Columns
 */

/** @param {Columns} table @param {string} name @returns {TextColumn | undefined} */
export function textColumn(table, name) {
  return Object.hasOwn(table.texts, name) ? table.texts[name] : undefined;
}

/** A column of numbers. Raises OptionError if there is none of that name. @param {Columns} table @param {string} name */
export function numberColumn(table, name) {
  if (Object.hasOwn(table.numbers, name)) return table.numbers[name];
  const known = [...Object.keys(table.texts), ...Object.keys(table.numbers)].sort();
  throw new OptionError(`The table has no column '${name}'; known are ${known.join(", ")}.`);
}

/** The text of a row; null if it is missing. @param {TextColumn} column @param {number} row @returns {string | null} */
export function textAt({ values, codes }, row) {
  return codes[row] < 0 ? null : values[codes[row]];
}

/** Per code whether its text fits, and last whether a missing one does. @param {TextColumn} column @param {(text: string | null) => boolean} test */
function fitting(column, test) {
  return Uint8Array.from([...column.values, null], (text) => Number(test(text)));
}

/** Takes rows out of a mask whose text does not fit. @param {Uint8Array} mask @param {TextColumn} column @param {(text: string | null) => boolean} test */
export function keepTexts(mask, column, test) {
  const isWanted = fitting(column, test);
  const { codes } = column;
  const missing = column.values.length;
  for (let row = 0; row < mask.length; row += 1) mask[row] &= isWanted[codes[row] < 0 ? missing : codes[row]];
}

/** Takes rows out of a mask of which no text of these columns fits. @param {Uint8Array} mask @param {TextColumn[]} columns @param {(text: string | null) => boolean} test */
export function keepAnyText(mask, columns, test) {
  const found = new Uint8Array(mask.length);
  for (const column of columns) {
    const isWanted = fitting(column, test);
    for (let row = 0; row < found.length; row += 1) found[row] |= column.codes[row] < 0 ? 0 : isWanted[column.codes[row]];
  }
  for (let row = 0; row < mask.length; row += 1) mask[row] &= found[row];
}

/** Takes rows out of a mask whose number does not fit. @param {Uint8Array} mask @param {Float64Array} values @param {(value: number, row: number) => boolean} test */
export function keepNumbers(mask, values, test) {
  for (let row = 0; row < mask.length; row += 1) if (mask[row] && !test(values[row], row)) mask[row] = 0;
}
