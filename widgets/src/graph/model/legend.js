// What a legend says: the categories that there are here, and how many nodes have each.

const MOST = 16;

/**
 * Returns what to say of colors: a caption, the categories in use and all steps of a scale, and what else there is.
 * @param {import("./colors.js").Colors} colors
 */
export function legendOf({ categories, codes, counts, caption = "" }) {
  const used = new Set(codes.subarray(1));
  const entries = categories.map((category, code) => ({ category, count: counts[code], code })).filter(({ category, code }) => category.strength !== undefined || used.has(code));
  const rest = entries.length - MOST;
  const others = [...(rest > 0 ? [`and ${rest} more`] : []), ...(caption && used.has(-1) ? ["plain: not in the frame"] : [])];
  return { caption, entries: entries.slice(0, MOST), others };
}
