// Scroll arithmetic of a list of equally high rows that may be higher than a browser lets an element be.

/** Browsers clip elements somewhere above 17 million pixels; stay well below. */
export const MAX_HEIGHT = 12_000_000;

/**
 * @typedef {{rowCount: number, rowHeight: number, viewHeight: number}} Sizes
 */

/** Returns the height of the element that is scrolled. @param {Sizes} sizes */
export function scrollHeight({ rowCount, rowHeight }) {
  return Math.min(rowCount * rowHeight, MAX_HEIGHT);
}

/** Returns how many list pixels one scrolled pixel stands for; 1 unless the list is too high. @param {Sizes} sizes */
export function scale(sizes) {
  const list = sizes.rowCount * sizes.rowHeight - sizes.viewHeight;
  const scrolled = scrollHeight(sizes) - sizes.viewHeight;
  return scrolled > 0 && list > scrolled ? list / scrolled : 1;
}

/** Returns the list position, in range, nearest to `top`. @param {number} top @param {Sizes} sizes */
export function clampTop(top, sizes) {
  return Math.max(0, Math.min(top, sizes.rowCount * sizes.rowHeight - sizes.viewHeight));
}

/** Returns the first and last row to draw at a list position. @param {number} top @param {Sizes} sizes */
export function visibleRows(top, { rowCount, rowHeight, viewHeight }) {
  const first = Math.max(0, Math.floor(top / rowHeight));
  return { first, last: Math.min(rowCount - 1, Math.floor((top + viewHeight - 1) / rowHeight)) };
}

/** Returns the list position nearest to `top` at which a row is wholly in view. @param {number} row @param {number} top @param {Sizes} sizes */
export function topToShow(row, top, sizes) {
  const start = row * sizes.rowHeight;
  const lowest = start + sizes.rowHeight - sizes.viewHeight;
  return clampTop(start < top ? start : lowest > top ? lowest : top, sizes);
}
