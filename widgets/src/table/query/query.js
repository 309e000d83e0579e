// The query is the contract: what a view filters by, as predicates, and how it sorts; the kernel and the report get nothing else.

import { FilterError, parsed } from "./filter_text.js";

/**
 * @typedef {import("./filter_text.js").Predicate} Predicate
 * @typedef {{predicates: Predicate[], sort: {column: string, descending: boolean}[]}} Query
 * @typedef {{model: string | null, module: string | null, outside_modules: boolean}} ModuleChoice
 * @typedef {{search: string, filters: Record<string, string>, sort: string, is_descending: boolean} & ModuleChoice} State what all tables have on show
 */

const SEARCHED = ["op", "module", "source"];

/** Returns the state that shows everything, sorted by a column. @param {string} sort @returns {State} */
export function everything(sort) {
  return { search: "", filters: {}, model: null, module: null, outside_modules: false, sort, is_descending: false };
}

/** Tells whether a state leaves anything out. @param {State} state */
export function isFiltered({ search, filters, module, outside_modules: outside }) {
  return [search, ...Object.values(filters)].some((text) => text.trim() !== "") || module !== null || outside;
}

/**
 * Returns the query of a state, and by column what is wrong with a filter, which is left out.
 * @param {State} state @param {(column: string) => import("./filter_text.js").Kind} kindOf @param {Predicate[]} more of one table alone
 * @returns {{query: Query, errors: Record<string, string>}}
 */
export function queryOf(state, kindOf, more) {
  const { predicates, errors } = filterPredicates(state.filters, kindOf);
  const sort = [{ column: state.sort, descending: state.is_descending }];
  return { query: { predicates: [...predicates, ...searchPredicates(state.search), ...modulePredicates(state), ...more], sort }, errors };
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

/** Returns a predicate for each word, which must be in one of the columns. @param {string} search @returns {Predicate[]} */
function searchPredicates(search) {
  const words = search.split(/\s+/).filter(Boolean);
  return words.map((value) => ({ any: SEARCHED.map((column) => ({ column, op: "contains", value })) }));
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
