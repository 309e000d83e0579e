// Where the arrow keys lead in a grid; row -1 is the header.

/**
 * @typedef {{row: number, column: number}} Cell
 * @typedef {{rowCount: number, columnCount: number, pageRows: number}} Extent
 */

/**
 * Returns the cell a key leads to, or null if the key does not move.
 * @param {{key: string, ctrlKey?: boolean, metaKey?: boolean}} event
 * @param {Cell} from
 * @param {Extent} extent
 * @returns {Cell | null}
 */
export function moved(event, from, extent) {
  const lastRow = extent.rowCount - 1;
  const lastColumn = extent.columnCount - 1;
  const isFar = Boolean(event.ctrlKey || event.metaKey);
  const row = (/** @type {number} */ value) => ({ row: Math.max(-1, Math.min(value, lastRow)), column: from.column });
  const column = (/** @type {number} */ value) => ({ row: from.row, column: Math.max(0, Math.min(value, lastColumn)) });
  const body = (/** @type {number} */ value) => row(lastRow < 0 ? -1 : Math.max(0, value));
  switch (event.key) {
    case "ArrowDown":
      return isFar ? row(lastRow) : row(from.row + 1);
    case "ArrowUp":
      return isFar ? body(0) : row(from.row - 1);
    case "ArrowLeft":
      return column(from.column - 1);
    case "ArrowRight":
      return column(from.column + 1);
    case "PageDown":
      return body(from.row + extent.pageRows);
    case "PageUp":
      return body(from.row - extent.pageRows);
    case "Home":
      return isFar ? { row: lastRow < 0 ? -1 : 0, column: 0 } : column(0);
    case "End":
      return isFar ? { row: lastRow, column: lastColumn } : column(lastColumn);
    default:
      return null;
  }
}
