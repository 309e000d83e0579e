// A table's columns: texts as codes with their different values, numbers with NaN for missing.

/**
 * @typedef {{values: string[], codes: Int32Array}} TextColumn code -1 is missing
 * @typedef {{count: number, texts: Record<string, TextColumn>, numbers: Record<string, Float64Array>}} Columns
 */

/** @param {Columns} table @param {string} name @returns {TextColumn | undefined} */
export function textColumn(table, name) {
  return Object.hasOwn(table.texts, name) ? table.texts[name] : undefined;
}

/** Returns a column of numbers. Throws if there is none of that name. @param {Columns} table @param {string} name */
export function numberColumn(table, name) {
  if (Object.hasOwn(table.numbers, name)) return table.numbers[name];
  const known = [...Object.keys(table.texts), ...Object.keys(table.numbers)].sort();
  throw new Error(`The table has no column '${name}'; known are ${known.join(", ")}.`);
}

/** Returns the text of a row; null if it is missing. @param {TextColumn} column @param {number} row @returns {string | null} */
export function textAt({ values, codes }, row) {
  return codes[row] < 0 ? null : values[codes[row]];
}
