// What the op table adds to the query of all tables: level and phase.

import * as table from "../table/query/query.js";

/** @typedef {import("../table/query/query.js").State & {level: string, phase: string}} OpState */

/** @type {import("../table/query/grouping.js").Grouping["totals"]} */
const TOTALS = {
  self_time_us: "sum", self_fraction: "sum", median_us: "middle", iqr_us: "iqr", min_us: "least", total_time_us: "outer", self_device_time_us: "sum", total_device_time_us: "outer",
  flops: "sum", size_bytes: "sum", forward_us: "sum", backward_us: "sum",
};
/** Of groups alone: the median of what their calls take together in a run, which is no sum of medians. */
const RUNS = ["median_us"];
/** Of what has a forward and a backward pass, the self time in each, too. */
const PHASES = ["forward_us", "backward_us", ...RUNS];
const SLOWEST = [{ column: "self_time_us", descending: true }];

/** @param {string} label @param {string[]} by @param {{each?: string[], only?: string[]}} [more] @returns {import("../table/query/grouping.js").Way} */
function way(label, by, more = { only: PHASES }) {
  return { label, sort: SLOWEST, group: { by, totals: TOTALS, spread: "self_time_us", only: RUNS, ...more } };
}

/** The ways to group ops; repeated layers are one, with the spread over the layers. */
export const WAYS = {
  op: way("op", ["op"], {}),
  shape: way("op + shape", ["op", "input_shapes"], {}),
  module: way("module", ["location", "model"]),
  layer: way("layer", ["layer", "model"], { each: ["model", "location"], only: PHASES }),
  source: way("source line", ["source"]),
};

/** One more where some source is a library's. */
export const OWN = { own: way("your line", ["own_source"]) };

/** Returns the state that shows every op in call order. @returns {OpState} */
export function everything() {
  return { ...table.everything("op_id"), level: "", phase: "" };
}

/** Tells whether a state leaves anything out. @param {OpState} state */
export function isFiltered(state) {
  return table.isFiltered(state) || state.level !== "" || state.phase !== "";
}

/** @param {OpState} state */
export function predicates({ level, phase }) {
  return table.choicePredicates({ level, phase });
}
