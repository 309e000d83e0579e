// What the op table adds to the query of all tables: level and phase.

import * as table from "../table/query/query.js";

/** @typedef {import("../table/query/query.js").State & {level: string, phase: string}} OpState */

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
