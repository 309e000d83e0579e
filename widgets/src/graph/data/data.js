// The graphs of a trace as nbkit/views/graph/data.py packs them: nodes, edges and parts as columns.

/**
 * Texts of a column: the different ones, and of each row which; -1 is none.
 *
 * @typedef {{values: string[], codes: Int32Array}} Texts
 * @typedef {{count: number, texts: Record<string, Texts>, numbers: Record<string, Float64Array>}} Table
 * @typedef {{name: string, label: string, format: string, how: string, isInclusive: boolean, isScaled: boolean, center: number | null}} Value
 *   a number of nodes and parts that another frame knows; `how` a part has it of all in it (sum, max, min, mean) unless
 *   it is inclusive and the part has one of its own; a scaled one is colored by its size, not by its share
 * @typedef {{label: string, caption: string, isInclusive: boolean, looks?: Record<string, [keyof typeof import("../../shared/picture/palette.js").HUES, string]>, sides?: ({caption: string, isInclusive: boolean} | null)[]}} Overlay
 *   of a comparison `sides` are what was made of either side, null for one that has none
 * @typedef {{title: string, name: string, incomplete: string | null, figures: [string, string][], notes: string[], graphs: string[], trees: string[],
 *   values: Value[], overlay?: Overlay | null, nodes: Table, edges: Table, parts: Table, side?: string, numbersOf?: (name: string) => number[],
 *   comparison?: import("./correspondence.js").Comparison | null,
 *   correspondence?: import("./correspondence.js").Correspondence}} Data `side`, `correspondence` and
 *   `numbersOf`, the numbers of both sides by their name, are those of a side of the comparison; `trees` are the graphs of modules in which nothing is computed
 */

/** Kinds of nodes that hold values and do nothing. */
export const VALUES = new Set(["parameter", "buffer", "constant"]);

export { textAt } from "../../report/columns/columns.js";

/** Returns the number of a row; null where it is missing. @param {Float64Array} numbers @param {number} row */
export function numberAt(numbers, row) {
  return Number.isNaN(numbers[row]) ? null : numbers[row];
}

/** Returns the rows of a graph, in order. @param {Table} table @param {string} graph */
export function rowsOf({ count, texts }, graph) {
  const code = texts.graph.values.indexOf(graph);
  const rows = [];
  for (let row = 0; row < count; row += 1) if (texts.graph.codes[row] === code) rows.push(row);
  return rows;
}

/** Returns the ids of a column that are rows of a table, -1 for missing ones and others. @param {Float64Array} numbers @param {number} count */
export function idsOf(numbers, count) {
  return Int32Array.from(numbers, (id) => (id >= 0 && id < count ? id : -1));
}
