// Places on the canvas: which row lies where, in icicle (root on top) and flame (root below) orientation.

export const ROW = 18;
/** Height of the axis above the rows. */
export const AXIS = 18;

/** Height of all rows with the axis. @param {import("./layout.js").Layout} layout */
export function heightOf({ rowCount }) {
  return AXIS + rowCount * ROW;
}

/** The row that is shown at the place of a row; headings stay where they are. @param {import("./layout.js").Layout} layout @param {number} row @param {boolean} isFlame */
export function turned({ blocks }, row, isFlame) {
  if (!isFlame) return row;
  const block = blocks.find(({ first, count }) => row >= first && row < first + count);
  return block ? 2 * block.first + block.count - 1 - row : row;
}

/** Top edge of a row. @param {import("./layout.js").Layout} layout @param {number} row @param {boolean} isFlame */
export function topOf(layout, row, isFlame) {
  return AXIS + turned(layout, row, isFlame) * ROW;
}

/** The row at a height, as laid out. @param {import("./layout.js").Layout} layout @param {number} height @param {boolean} isFlame */
export function rowAt(layout, height, isFlame) {
  return turned(layout, Math.floor((height - AXIS) / ROW), isFlame);
}

/** Where a tooltip goes: right below the point, or on its other side where there is no room. @param {{x: number, y: number}} point @param {{width: number, height: number}} size @param {{width: number, height: number}} room @param {number} [gap] */
export function tooltipPlace({ x, y }, size, room, gap = 12) {
  const left = x + gap + size.width <= room.width ? x + gap : x - gap - size.width;
  const top = y + gap + size.height <= room.height ? y + gap : y - gap - size.height;
  return { left: Math.max(4, Math.min(left, room.width - size.width - 4)), top: Math.max(4, top) };
}
