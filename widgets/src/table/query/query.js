// The query is the contract: what a view filters by, as predicates, and how it sorts; the kernel and the report get nothing else.

import { FilterError, parsed } from "./filter_text.js";

/**
 * @typedef {import("./filter_text.js").Predicate} Predicate
 * @typedef {{column: string, descending: boolean}} Sort
 * @typedef {{predicates: Predicate[], sort: Sort[], group?: import("./grouping.js").Grouping}} Query
 * @typedef {{model: string | null, module: string | null, outside_modules: boolean}} ModuleChoice
 * @typedef {{search: string, filters: Record<string, string>, sort: Sort[], group: string, open: number[]} & ModuleChoice} State what all tables have on show;
 *   the first of `sort` decides first, `group` names a way to group rows, "" for none, and `open` holds a row of each group that is open
 */

const SEARCHED = ["op", "module", "source"];

/** Returns the state that shows everything without groups, sorted by a column. @param {string} column @returns {State} */
export function everything(column) {
  return { search: "", filters: {}, model: null, module: null, outside_modules: false, sort: [{ column, descending: false }], group: "", open: [] };
}

/** Tells whether a state leaves anything out. @param {State} state */
export function isFiltered({ search, filters, module, outside_modules: outside }) {
  return [search, ...Object.values(filters)].some((text) => text.trim() !== "") || module !== null || outside;
}

/**
 * Returns the query of a state, and by column what is wrong with a filter, which is left out.
 * @param {State} state @param {(column: string) => import("./filter_text.js").Kind} kindOf @param {Predicate[]} more of one table alone @param {string[]} [searched] the columns that a search looks through
 * @returns {{query: Query, errors: Record<string, string>}}
 */
export function queryOf(state, kindOf, more, searched = SEARCHED) {
  const { predicates, errors } = filterPredicates(state.filters, kindOf);
  return { query: { predicates: [...predicates, ...searchPredicates(state.search, searched), ...modulePredicates(state), ...more], sort: state.sort }, errors };
}

/** @param {Record<string, string>} filters @param {(column: string) => import("./filter_text.js").Kind} kindOf */
function filterPredicates(filters, kindOf) {
  /** @type {Predicate[]} */
  const predicates = [];
  /** @type {Record<string, string>} */
  const errors = {};
  for (const [column, text] of Object.entries(filters)) {
    try {
      const predicate = parsed(column, kindOf(column), text);
      if (predicate) predicates.push(predicate);
    } catch (error) {
      if (!(error instanceof FilterError)) throw error;
      errors[column] = error.message;
    }
  }
  return { predicates, errors };
}

/** Returns a predicate for each word, which must be in one of the columns. @param {string} search @param {string[]} searched @returns {Predicate[]} */
function searchPredicates(search, searched) {
  const words = search.split(/\s+/).filter(Boolean);
  return words.map((value) => ({ any: searched.map((column) => ({ column, op: "contains", value })) }));
}

/** @param {ModuleChoice} choice @returns {Predicate[]} */
function modulePredicates({ model, module, outside_modules: outside }) {
  if (outside) return [{ column: "module", op: "null" }];
  if (module === null) return [];
  /** @type {Predicate} */
  const inside = { column: "module", op: "inside", value: module };
  return model === null ? [inside] : [inside, { column: "model", op: "equals", value: model }];
}

/** Returns a predicate for each chosen text, which its column must equal; "" asks for nothing. @param {Record<string, string>} choices @returns {Predicate[]} */
export function choicePredicates(choices) {
  return Object.entries(choices).filter(([, value]) => value).map(([column, value]) => ({ column, op: "equals", value }));
}
