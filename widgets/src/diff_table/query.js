// What the diff table adds to the query of all tables: choices, and the least value of each metric.

import * as table from "../table/query/query.js";

/** @typedef {import("../table/query/query.js").State & {choices: Record<string, string>, thresholds: Record<string, number>}} DiffState */

/** @type {Record<string, "min" | "max" | "sum">} */
const TOTALS = {
  rank: "min", noise_ratio: "max", max_abs_error: "max", max_rel_error: "max", local_error: "max", propagated_error: "max", total_error: "max",
  mismatch_count: "sum", mismatch_fraction: "max", mean_abs_error: "max", max_ulp: "max", op_id: "min",
};
const WORST = [{ column: "rank", descending: false }];

/** The ways to group results: equal ones are those of one op with one verdict and one kind of difference. @type {Record<string, import("../table/query/grouping.js").Way>} */
export const WAYS = {
  equal: { label: "equal results", sort: WORST, group: { by: ["op", "status", "pattern"], totals: TOTALS, among: ["op"] } },
  module: { label: "module", sort: WORST, group: { by: ["module", "model"], totals: TOTALS, among: ["module", "model"] } },
  source: { label: "source line", sort: WORST, group: { by: ["source"], totals: TOTALS, among: ["source"] } },
};

/** Returns the state that shows every row, the worst first, or in the order of another column. @param {string} [natural] @returns {DiffState} */
export function everything(natural = "rank") {
  return { ...table.everything(natural), choices: {}, thresholds: {} };
}

/** Tells whether a state leaves anything out. @param {DiffState} state */
export function isFiltered(state) {
  return table.isFiltered(state) || Object.values(state.choices).some(Boolean) || Object.keys(state.thresholds).length > 0;
}

/** Returns the predicates of a state; a mismatched or failed row without a metric passes its threshold. @param {DiffState} state @param {string[]} harmless verdicts of rows that are not wrong @returns {import("../table/query/query.js").Predicate[]} */
export function predicates({ choices, thresholds }, harmless) {
  const isWrong = { all: [{ column: "status", op: "in", value: harmless, not: true }, { column: "status", op: "null", not: true }] };
  const least = Object.entries(thresholds).map(([column, value]) => ({ any: [{ column, op: "at_least", value }, { all: [{ column, op: "null" }, isWrong] }] }));
  return [...table.choicePredicates(choices), ...least];
}

/** Sets a value in a copy of a record, or removes it there if it is empty. @template T @param {Record<string, T>} record @param {string} name @param {T | null} value @returns {Record<string, T>} */
export function withValue(record, name, value) {
  const { [name]: _, ...others } = record;
  return value === null || value === "" ? others : { ...others, [name]: value };
}
