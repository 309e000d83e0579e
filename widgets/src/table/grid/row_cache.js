// The rows of one query that have arrived, and which page to ask for next.

/** Rows asked for at once. */
export const PAGE_ROWS = 100;
/** Rows kept before those farthest from the view are let go. */
const MAX_ROWS = 20_000;

/** Makes a cache of rows by their position in the order. */
export function createRowCache() {
  /** @type {Map<number, any[]>} */
  const rows = new Map();
  return {
    /** @param {number} position */
    get: (position) => rows.get(position),

    /** @param {number} offset @param {any[][]} page */
    add(offset, page) {
      page.forEach((row, index) => rows.set(offset + index, row));
      if (rows.size <= MAX_ROWS) return;
      const byDistance = [...rows.keys()].sort((a, b) => Math.abs(b - offset) - Math.abs(a - offset));
      for (const position of byDistance.slice(0, rows.size - MAX_ROWS / 2)) rows.delete(position);
    },

    clear: () => rows.clear(),

    /**
     * Returns the page that fills the first gap in view, or null if all is there; it reaches past the view in the direction
     * of what is missing, so that slow scrolling finds its rows already there.
     * @param {number} first @param {number} last @param {number} rowCount
     */
    missing(first, last, rowCount) {
      const margin = Math.floor((PAGE_ROWS - (last - first + 1)) / 2);
      let gap = first;
      while (gap <= last && rows.has(gap)) gap += 1;
      if (gap > last) return null;
      const isWholeViewMissing = gap === first && !rows.has(last);
      const start = gap > first ? gap : isWholeViewMissing ? gap - margin : lastGap(rows, first, last) - PAGE_ROWS + 1;
      const offset = Math.max(0, Math.min(start, rowCount - 1));
      return { offset, limit: Math.min(PAGE_ROWS, rowCount - offset) };
    },
  };
}

/** Returns the last missing position in view. @param {Map<number, any[]>} rows @param {number} first @param {number} last */
function lastGap(rows, first, last) {
  let position = last;
  while (position > first && rows.has(position)) position -= 1;
  return position;
}
