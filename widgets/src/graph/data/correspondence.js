// What of two graphs corresponds: of each node and part its state, its counterparts on the other side, and words for both.

import { textAt } from "./data.js";
import { KINDS } from "./hierarchy.js";

/** States of what was compared; a part with several of them in it has one more, a row that was not compared -1. */
export const STATES = /** @type {const} */ ({ same: 0, dtype: 1, shape: 2, alone: 3, mixed: 4 });
/** What the outline says of each state. */
export const NOTES = ["", "≠ dtype", "≠ shape", "only here", "≠ inside"];
export const SIDES = /** @type {const} */ (["left", "right"]);
const DTYPE = "cast";

/**
 * The comparison as it is packed: the graphs of each side, those that were compared first, and the rows of the frame.
 *
 * @typedef {{name: string, graphs: string[]}} Side
 * @typedef {{sides: [Side, Side], rows: import("./data.js").Table}} Comparison
 * @typedef {"nodes" | "parts"} Level
 * @typedef {{table: Level, rows: number[], isGroup: boolean}} Counterpart
 * @typedef {{state: number, side: number, message: string | null, partners: number[]}} Known
 */

export class Correspondence {
  /** @param {Comparison} comparison */
  constructor({ sides, rows }) {
    this.sides = sides;
    /** What is known of the rows of each table. @type {Record<Level, Map<number, Known>>} */
    this.known = { nodes: new Map(), parts: new Map() };
    for (let row = 0; row < rows.count; row += 1) this.note(rows, row);
  }

  /** @param {import("./data.js").Table} rows @param {number} row */
  note({ texts, numbers }, row) {
    const known = this.known[textAt(texts.level, row) === "part" ? "parts" : "nodes"];
    const ids = SIDES.map((side) => numbers[`${side}_id`][row]);
    const [relation, message] = [textAt(texts.relation, row), textAt(texts.message, row)];
    const isPair = !ids.some(Number.isNaN);
    const state = !isPair ? STATES.alone : message === null ? STATES.same : relation === DTYPE ? STATES.dtype : STATES.shape;
    ids.forEach((id, side) => {
      if (Number.isNaN(id)) return;
      const entry = known.get(id) ?? { state: STATES.alone, side, message: null, partners: [] };
      known.set(id, entry);
      if (isPair) entry.state = entry.partners.length ? Math.max(entry.state, state) : state;
      if (isPair) entry.partners.push(ids[1 - side]);
      entry.message ??= message ?? (isPair ? null : relation);
    });
  }

  /** @param {Level} table @param {number} row */
  stateOf(table, row) {
    return this.known[table].get(row)?.state ?? -1;
  }

  /** Returns the rows of the other side that correspond. @param {Level} table @param {number} row @returns {number[]} */
  partnersOf(table, row) {
    return this.known[table].get(row)?.partners ?? [];
  }

  /** Returns the side of a graph: 0 or 1. @param {string | null} graph */
  sideOf(graph) {
    return this.sides[1].graphs.includes(graph ?? "") ? 1 : 0;
  }

  /** Returns how a row compares, in words. @param {Level} table @param {number} row */
  wordsOf(table, row) {
    const entry = this.known[table].get(row);
    if (!entry) return "not compared";
    if (entry.state === STATES.alone) return `only on the ${SIDES[entry.side]}${entry.message ? ` (${entry.message})` : ""}`;
    if (entry.message) return `differs: ${entry.message}`;
    // What is in parts may differ nevertheless.
    return table === "parts" ? "on both sides" : "same on both sides";
  }
}

/** Returns the table in which an item is a row; null for groups. @param {import("./hierarchy.js").Hierarchy} tree @param {number} item @returns {Level | null} */
export function levelOf(tree, item) {
  return tree.kind[item] === KINDS.node ? "nodes" : tree.kind[item] === KINDS.part ? "parts" : null;
}

/**
 * Returns the rows of the other side that correspond to an item; of a group those of its first member that has some, `isGroup`.
 * @param {Correspondence} correspondence @param {import("./hierarchy.js").Hierarchy} tree @param {number} item
 * @returns {Counterpart}
 */
export function counterpartOf(correspondence, tree, item) {
  const table = levelOf(tree, item);
  if (table) return { table, rows: correspondence.partnersOf(table, tree.row[item]), isGroup: false };
  const members = tree.children[item].map((child) => counterpartOf(correspondence, tree, child));
  return { table: "nodes", rows: [], ...members.find(({ rows }) => rows.length > 0), isGroup: true };
}

/** Returns how an item compares, in words: "" for groups, and where nothing is compared. @param {import("./data.js").Data} data @param {import("./hierarchy.js").Hierarchy} tree @param {number} item */
export function comparedWords({ correspondence }, tree, item) {
  const table = levelOf(tree, item);
  return correspondence && table ? correspondence.wordsOf(table, tree.row[item]) : "";
}
