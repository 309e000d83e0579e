// Places on the canvas: which row lies where, in icicle (root on top) and flame (root below) orientation.

export const ROW = 18;
/** Height of the axis above the rows. */
export const AXIS = 18;

/** Returns the height of all rows with the axis. @param {import("./layout.js").Layout} layout */
export function heightOf({ rowCount }) {
  return AXIS + rowCount * ROW;
}

/** Returns the row that is drawn in place of a row; headings stay where they are. @param {import("./layout.js").Layout} layout @param {number} row @param {boolean} isFlame */
export function turned({ blocks }, row, isFlame) {
  if (!isFlame) return row;
  const block = blocks.find(({ first, count }) => row >= first && row < first + count);
  return block ? 2 * block.first + block.count - 1 - row : row;
}

/** Returns the top edge of a row. @param {import("./layout.js").Layout} layout @param {number} row @param {boolean} isFlame */
export function topOf(layout, row, isFlame) {
  return AXIS + turned(layout, row, isFlame) * ROW;
}

/** Returns the row at a height, as laid out. @param {import("./layout.js").Layout} layout @param {number} height @param {boolean} isFlame */
export function rowAt(layout, height, isFlame) {
  return turned(layout, Math.floor((height - AXIS) / ROW), isFlame);
}
