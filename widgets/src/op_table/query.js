// The question a view asks: what it filters by and how it sorts, in the kernel's words.

/**
 * @typedef {{search: string, filters: Record<string, string>, level: string, phase: string, model: string | null,
 *   module: string | null, outside_modules: boolean, sort: string, is_descending: boolean}} Query
 */

/** The query that shows every op in call order. @returns {Query} */
export function everything() {
  return {
    search: "", filters: {}, level: "", phase: "", model: null, module: null, outside_modules: false,
    sort: "op_id", is_descending: false,
  };
}

/** Whether a query leaves anything out. @param {Query} query */
export function isFiltered(query) {
  const texts = [query.search, query.level, query.phase, ...Object.values(query.filters)];
  return texts.some((text) => text.trim() !== "") || query.module !== null || query.outside_modules;
}
