// Linking in an exported page: one selection shared by its widgets, as nbkit/views/linking.py links them in the notebook.

import { typed } from "../flamegraph/data/data.js";
import { counted } from "../shared/units.js";
import { isDevice } from "./columns/op_columns.js";
import { shown } from "../shared/names.js";

const LABEL = 80;

/**
 * @typedef {{get: (name: string) => any, set: (name: string, value: any) => void, on: (name: string, listener: Function) => void,
 *   off: (name: string, listener: Function) => void}} Model
 * @typedef {{model: Model, state: any}} Table a table's model, and its state of unpack()
 */

/**
 * Links the widgets of one trace; calling what comes back ends it. A widget that is not there is null.
 *
 * A selected frame shows only the ops inside it in the op table, with the work on devices that they launched; a range of
 * time those with a part in it; of both, the one that was selected last. Clearing the table's filters shows all of them
 * again, as does clearing what is selected. A selected op is selected in flame graph and op table, and its first
 * difference, the worst one, in the diff table; a selected difference selects its op. A selected pair of an alignment
 * selects its node in the graphs, and a node its pair.
 * @param {{flame?: Model | null, graph?: Model | null, ops?: Table | null, diffs?: Table | null, pairs?: Table | null}} widgets
 * @returns {() => void}
 */
export function linkTables({ flame = null, graph = null, ops = null, diffs = null, pairs = null }) {
  const ends = [
    ...(graph && ops ? [linkGraph(graph, ops)] : []),
    ...(flame && ops ? [linkFrames(flame, ops)] : []),
    ...(diffs && ops ? [linkDifferences(diffs, ops.model)] : []),
    ...(pairs && graph ? [linkPairs(pairs, graph)] : []),
    // Without an op table the two are linked with each other.
    ...(diffs && flame && !ops ? [linkDifferences(diffs, flame)] : []),
  ];
  return () => ends.forEach((end) => end());
}

/** @param {Model} flame @param {Table} ops */
function linkFrames(flame, { model, state }) {
  let version = 0;
  let isClearing = false;
  /** @param {"selection" | "selected_range"} last which of both was selected last */
  const showSelected = (last) => {
    if (isClearing) return;
    const [range, selection] = [flame.get("selected_range"), flame.get("selection")];
    const isRange = range && (last === "selected_range" || !selection);
    const chosen = isRange ? range : selection;
    if (!chosen) return model.set("within", null);
    const ids = idsOf(chosen.ids, state.count);
    // A range has the calls on devices that ran in it.
    state.within = isRange ? ids : withKernels(state, ids);
    version += 1;
    model.set("within", { label: `${shown(chosen.label, LABEL)} (${counted(state.within.length, "op")})`, version });
  };
  const cleared = () => {
    if (model.get("within")) return;
    state.within = null;
    isClearing = true;
    flame.set("selection", null);
    flame.set("selected_range", null);
    isClearing = false;
  };
  const copy = (/** @type {Model} */ from, /** @type {Model} */ to) => () => to.set("selected_op_id", from.get("selected_op_id"));
  const end = listening([
    // Before the table itself hears of it and asks for its rows.
    [flame, "change:selection", () => showSelected("selection")], [flame, "change:selected_range", () => showSelected("selected_range")],
    [model, "change:within", cleared],
    [flame, "change:selected_op_id", copy(flame, model)], [model, "change:selected_op_id", copy(model, flame)],
  ]);
  copy(flame, model)();
  showSelected("selection");
  return end;
}

/** Selects the op of a node, and limits the table to the ops of a part, or to those of its module. @param {Model} graph @param {Table} ops */
function linkGraph(graph, { model, state }) {
  let version = 0;
  const showSelected = () => {
    const selection = graph.get("selection");
    const ids = selection ? opsOf(state, selection) : null;
    state.within = ids && withKernels(state, ids);
    version += 1;
    model.set("within", ids && { label: `${shown(selection.label, LABEL)} (${counted(state.within.length, "op")})`, version });
  };
  const copy = (/** @type {Model} */ from, /** @type {Model} */ to) => () => to.set("selected_op_id", from.get("selected_op_id"));
  return listening([
    [graph, "change:selection", showSelected],
    [graph, "change:selected_op_id", copy(graph, model)], [model, "change:selected_op_id", copy(model, graph)],
  ]);
}

/** Returns the ops of what is selected in a graph: by their ids, else by the module; null where neither tells. @param {any} state @param {{ids: any, module: string | null}} selection */
function opsOf(state, { ids: bytes, module }) {
  const ids = idsOf(bytes, state.count);
  if (ids.length || module === null) return ids.length ? ids : null;
  const { values, codes } = state.texts.module;
  const isInside = values.map((/** @type {string} */ path) => module === "" || path === module || path.startsWith(`${module}.`));
  return Int32Array.from([...codes.keys()].filter((id) => codes[id] >= 0 && isInside[codes[id]]));
}

/** @param {Table} diffs @param {Model} ops */
function linkDifferences({ model, state }, ops) {
  const opOf = (/** @type {number} */ row) => state.numbers.op_id[row];
  /** @type {Map<number | null, number>} */
  const rowOf = new Map();
  const { rank } = state.numbers;
  for (let row = 0; row < state.count; row += 1) {
    const known = rowOf.get(opOf(row));
    if (known === undefined || rank[row] < rank[known]) rowOf.set(opOf(row), row);
  }
  return listening([
    [model, "change:selected_row", () => {
      const row = model.get("selected_row");
      if (row !== null) ops.set("selected_op_id", opOf(row));
    }],
    [ops, "change:selected_op_id", () => {
      const [row, opId] = [model.get("selected_row"), ops.get("selected_op_id")];
      if (row === null || opOf(row) !== opId) model.set("selected_row", rowOf.get(opId) ?? null);
    }],
  ]);
}

/** Selects the node of a row of an alignment, of a pair that of the left side, and the row of a node. @param {Table} pairs @param {Model} graph */
function linkPairs({ model, state }, graph) {
  const { left, right } = state.nodes;
  /** @type {Map<number, number>} */
  const rowOf = new Map();
  for (const nodes of [left, right]) nodes.forEach((/** @type {number} */ node, /** @type {number} */ row) => node >= 0 && !rowOf.has(node) && rowOf.set(node, row));
  return listening([
    [model, "change:selected_row", () => {
      const row = model.get("selected_row");
      const node = row === null ? -1 : left[row] >= 0 ? left[row] : right[row];
      if (node >= 0 && rowOf.get(graph.get("selected_node_id")) !== row) graph.set("selected_node_id", node);
    }],
    [graph, "change:selected_node_id", () => {
      const row = rowOf.get(graph.get("selected_node_id"));
      if (row !== undefined) model.set("selected_row", row);
    }],
  ]);
}

/** @param {[Model, string, Function][]} list @returns {() => void} */
function listening(list) {
  for (const [model, name, listener] of list) model.on(name, listener);
  return () => {
    for (const [model, name, listener] of list) model.off(name, listener);
  };
}

/** Returns the ids inside a frame, each once, in call order. @param {any} bytes @param {number} count */
function idsOf(bytes, count) {
  const ids = [...new Set(typed(bytes, Int32Array))].filter((id) => id >= 0 && id < count);
  return Int32Array.from(ids).sort();
}

/** Returns the ops and the work on devices that they launched, which has frames on tracks of its own. @param {any} state @param {Int32Array} ids */
function withKernels({ numbers, texts }, ids) {
  const isInside = new Set(ids);
  const isBeside = isDevice(texts.level);
  const launched = [...numbers.parent_id.keys()].filter((id) => isBeside[id] && isInside.has(numbers.parent_id[id]));
  return Int32Array.from(new Set([...ids, ...launched])).sort();
}
