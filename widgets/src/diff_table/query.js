// The question the diff table asks, in the kernel's words.

/**
 * @typedef {{search: string, filters: Record<string, string>, choices: Record<string, string>,
 *   thresholds: Record<string, number>, model: string | null, module: string | null, outside_modules: boolean,
 *   sort: string, is_descending: boolean}} DiffQuery
 */

/** The query that shows every row, the worst first. @returns {DiffQuery} */
export function everything() {
  return {
    search: "", filters: {}, choices: {}, thresholds: {}, model: null, module: null, outside_modules: false,
    sort: "rank", is_descending: false,
  };
}

/** Whether a query leaves anything out. @param {DiffQuery} query */
export function isFiltered(query) {
  const texts = [query.search, ...Object.values(query.filters), ...Object.values(query.choices)];
  return texts.some((text) => text.trim() !== "") || Object.keys(query.thresholds).length > 0
    || query.module !== null || query.outside_modules;
}

/** A record with a value in a place, or without that place if there is no value. @template T @param {Record<string, T>} record @param {string} name @param {T | null} value @returns {Record<string, T>} */
export function withValue(record, name, value) {
  const { [name]: _, ...others } = record;
  return value === null || value === "" ? others : { ...others, [name]: value };
}
