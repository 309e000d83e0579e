// What of a graph is selected, as the model of the widget holds it.

import { numberAt, textAt } from "./data.js";
import { titleOf } from "./words.js";

/** Traits that name one row. */
const TRAITS = ["selected_node_id", "selected_part_id", "selected_op_id"];
/** A row to select, and whether it was asked for as an op. @typedef {{table: "nodes" | "parts", row: number, isOp: boolean}} Asked */
/** Nothing selected. */
export const NONE = { selected_node_id: null, selected_part_id: null, selected_op_id: null, selection: null };

/**
 * Returns the traits of a selected item: its node or part, the op of a recorded step that a node stands for, and what else it
 * holds of that step: the ids of its ops, else the path of its module.
 * @param {import("../model/model.js").GraphModel} model @param {number} item -1 for none
 */
export function traitsOf(model, item) {
  if (item < 0) return NONE;
  const { nodes, parts } = model.data;
  const [node, part] = [model.nodeOf(item), model.partOf(item)];
  const ids = model.nodesOf(item).map((row) => nodes.numbers.op_id[row]).filter((id) => id >= 0);
  const module = part === null ? node === null ? null : textAt(nodes.texts.module, node) : textAt(parts.texts.module, part);
  const selection = { label: titleOf(model.data, model.tree, item), ids: new DataView(Int32Array.from(ids).sort().buffer), module };
  const op = node === null ? null : numberAt(nodes.numbers.op_id, node);
  return { selected_node_id: node, selected_part_id: part, selected_op_id: op, selection: op === null ? selection : null };
}

/** Returns the graph and the row that the model has selected; null for none, or one that is not there. @param {import("./data.js").Data} data @param {Record<string, number | null>} traits @returns {{table: "nodes" | "parts", row: number} | null} */
export function askedFor(data, { selected_node_id: node, selected_part_id: part, selected_op_id: op }) {
  if (node !== null && node < data.nodes.count) return { table: "nodes", row: node };
  if (part !== null && part < data.parts.count) return { table: "parts", row: part };
  const row = op === null ? -1 : data.nodes.numbers.op_id.indexOf(op);
  return row < 0 ? null : { table: "nodes", row };
}

/** The selection as the widget's model holds it, where Python and other widgets set it, too. */
export class SharedSelection {
  /** @param {any} widget the widget's model */
  constructor(widget) {
    this.widget = widget;
    this.isTelling = false;
    /** What both sides know. @type {Record<string, any>} */
    this.known = NONE;
  }

  /** @param {(change: any) => void} listener @returns {Record<string, (change: any) => void>} listeners by event */
  static listeners(listener) {
    return Object.fromEntries(TRAITS.map((name) => [`change:${name}`, listener]));
  }

  /** Tells what is selected. @param {import("../model/model.js").GraphModel} model @param {number} item @param {boolean} isAsked whether another widget did, whose own limits stay */
  tell(model, item, isAsked) {
    const { selection, ...ids } = traitsOf(model, item);
    this.known = { ...NONE, ...ids };
    // Each change is heard here, too, before the others are made.
    this.isTelling = true;
    for (const [name, value] of Object.entries(isAsked ? ids : { ...ids, selection })) this.widget.set(name, value);
    this.isTelling = false;
    this.widget.save_changes();
  }

  /** Returns what was selected elsewhere: undefined if that is not new, null if it is nothing. @param {import("./data.js").Data} data @returns {Asked | null | undefined} */
  news(data) {
    const traits = Object.fromEntries(TRAITS.map((name) => [name, this.widget.get(name) ?? null]));
    const changed = TRAITS.filter((name) => traits[name] !== this.known[name]);
    if (this.isTelling || !changed.length) return undefined;
    this.known = { ...NONE, ...traits };
    const [name] = changed.filter((trait) => traits[trait] !== null);
    const asked = name ? askedFor(data, { ...NONE, [name]: traits[name] }) : null;
    return asked && { ...asked, isOp: name === "selected_op_id" };
  }
}
