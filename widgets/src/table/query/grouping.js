// The ways to group a table's rows, as its menu offers them, and what of a state changes with each.

/**
 * How rows are grouped, as nbkit/analysis/query/groups.py explains it; `open` holds a row of each group that is open.
 * @typedef {{by: string[], totals: Record<string, "sum" | "min" | "max" | "outer" | "middle" | "iqr" | "least">, spread?: string, each?: string[], among?: string[], only?: string[], open?: number[]}} Grouping
 */

/**
 * `group` goes into the query as it is; `sort` is the order in which the groups come at first.
 * @typedef {{label: string, group: Grouping, sort: import("./query.js").Sort[]}} Way
 */

/** Returns the change of state that groups rows in a way; the natural order comes back without groups. @param {Record<string, Way>} ways @param {string} name "" for no groups @param {string} natural */
export function groupedBy(ways, name, natural) {
  return { group: name, open: [], sort: name ? ways[name].sort : [{ column: natural, descending: false }] };
}

/** Returns the state's rows with one group opened, or closed if it is open. @param {number[]} open @param {number} row the first one of the group */
export function toggled(open, row) {
  return open.includes(row) ? open.filter((other) => other !== row) : [...open, row];
}

/** Returns the part of a query that groups; null for none. @param {Record<string, Way>} ways @param {{group: string, open: number[]}} state @returns {Grouping | null} */
export function groupOf(ways, { group, open }) {
  return group ? { ...ways[group].group, open } : null;
}
