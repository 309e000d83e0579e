// What a legend says: the categories that there are here, and how many nodes have each.

const MOST = 16;

/**
 * Returns what to say of colors: a caption, the categories in use, and how many more there are.
 * @param {import("./colors.js").Colors} colors
 */
export function legendOf({ categories, codes, counts, caption = "" }) {
  const used = new Set(codes);
  const entries = categories.map((category, code) => ({ category, count: counts[code], code })).filter(({ code }) => used.has(code));
  return { caption, entries: entries.slice(0, MOST), rest: entries.length - MOST };
}
