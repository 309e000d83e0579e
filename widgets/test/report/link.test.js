import assert from "node:assert/strict";
import { test } from "node:test";
import { linkTables } from "../../src/report/link.js";
import { standInModel } from "../../src/report/stand_in.js";

/** A step (0) of an op (1) that launches a kernel (2) in a driver call, and another op (3). */
function opTable() {
  const state = {
    count: 4,
    numbers: { parent_id: Float64Array.from([NaN, 0, 1, 0]) },
    texts: { level: { values: ["aten", "kernel"], codes: Int32Array.from([0, 0, 1, 0]) } },
  };
  return { model: standInModel({ within: null, selected_op_id: null }), state };
}

/** Rows of ops 3, 1 and 1, of which the last one is the worst. */
function diffTable() {
  const state = {
    count: 3, numbers: { op_id: Float64Array.from([3, 1, 1]), rank: Float64Array.from([3, 2, 1]) },
  };
  return { model: standInModel({ selected_row: null }), state };
}

function flameModel() {
  return standInModel({ selection: null, selected_range: null, selected_op_id: null });
}

const RANGE = { label: "range 5.00 µs to 9.00 µs", from_us: 5, to_us: 9, ids: new DataView(Int32Array.from([0, 1]).buffer) };
const FRAME = { label: "aten.mm\u202e", ids: new DataView(Int32Array.from([1, 1, 99]).buffer) };

test("a selected frame limits the table to the ops inside it and what they launched", () => {
  const [flame, ops] = [flameModel(), opTable()];
  linkTables({ flame, ops });
  flame.set("selection", FRAME);
  assert.deepEqual([...(/** @type {any} */ (ops.state).within)], [1, 2]);
  assert.deepEqual(ops.model.get("within"), { label: "aten.mm\\u202e (2 ops)", version: 1 });
});

test("each selection is a new version, and clearing it in the table or the graph shows all ops", () => {
  const [flame, ops] = [flameModel(), opTable()];
  linkTables({ flame, ops });
  flame.set("selection", FRAME);
  flame.set("selection", { ...FRAME });
  assert.equal(ops.model.get("within").version, 2);
  ops.model.set("within", null);
  assert.deepEqual([flame.get("selection"), /** @type {any} */ (ops.state).within], [null, null]);
  flame.set("selection", FRAME);
  flame.set("selection", null);
  assert.deepEqual([ops.model.get("within"), /** @type {any} */ (ops.state).within], [null, null]);
});

test("a range limits the table to its calls alone, of range and frame the one that was selected last counts", () => {
  const [flame, ops] = [flameModel(), opTable()];
  const limit = () => [ops.model.get("within")?.label ?? null, /** @type {any} */ (ops.state).within && [.../** @type {any} */ (ops.state).within]];
  linkTables({ flame, ops });
  flame.set("selection", FRAME);
  flame.set("selected_range", RANGE);
  // Not the kernel that op 1 launched: it ran later.
  assert.deepEqual(limit(), ["range 5.00 µs to 9.00 µs (2 ops)", [0, 1]]);
  flame.set("selection", { ...FRAME });
  assert.deepEqual(limit(), ["aten.mm\\u202e (2 ops)", [1, 2]]);
  flame.set("selection", null);
  assert.deepEqual(limit()[1], [0, 1]);
  flame.set("selected_range", null);
  assert.deepEqual(limit(), [null, null]);
});

test("showing all ops in the table clears frame and range, and the table hears of nothing between", () => {
  const [flame, ops] = [flameModel(), opTable()];
  linkTables({ flame, ops });
  flame.set("selection", FRAME);
  flame.set("selected_range", RANGE);
  /** @type {any[]} */
  const seen = [];
  ops.model.on("change:within", () => seen.push(ops.model.get("within")));
  ops.model.set("within", null);
  assert.deepEqual([flame.get("selection"), flame.get("selected_range"), /** @type {any} */ (ops.state).within, seen], [null, null, null, [null]]);
});

test("a selected op is selected in all widgets, with its worst difference", () => {
  const [flame, ops, diffs] = [flameModel(), opTable(), diffTable()];
  linkTables({ flame, ops, diffs });
  flame.set("selected_op_id", 1);
  assert.deepEqual([ops.model.get("selected_op_id"), diffs.model.get("selected_row")], [1, 2]);
  ops.model.set("selected_op_id", 0);
  assert.deepEqual([flame.get("selected_op_id"), diffs.model.get("selected_row")], [0, null]);
});

test("a selected difference selects its op and stays", () => {
  const [flame, ops, diffs] = [flameModel(), opTable(), diffTable()];
  linkTables({ flame, ops, diffs });
  diffs.model.set("selected_row", 1);
  assert.deepEqual([ops.model.get("selected_op_id"), flame.get("selected_op_id"), diffs.model.get("selected_row")], [1, 1, 1]);
  diffs.model.set("selected_row", null);
  assert.equal(ops.model.get("selected_op_id"), 1);
});

test("what is selected when the link is made holds, and the link can be ended", () => {
  const [flame, ops] = [flameModel(), opTable()];
  flame.set("selected_op_id", 3);
  const unlink = linkTables({ flame, ops });
  assert.equal(ops.model.get("selected_op_id"), 3);
  unlink();
  flame.set("selected_op_id", 1);
  flame.set("selection", FRAME);
  assert.deepEqual([ops.model.get("selected_op_id"), ops.model.get("within")], [3, null]);
});

test("flame graph and diff table are linked where there is no op table", () => {
  const [flame, diffs] = [flameModel(), diffTable()];
  linkTables({ flame, diffs });
  flame.set("selected_op_id", 3);
  assert.equal(diffs.model.get("selected_row"), 0);
});

test("a pair of an alignment selects its node, and a node of either side its pair", () => {
  const pairs = { model: standInModel({ selected_row: null }), state: { nodes: { left: Int32Array.from([0, -1, -1]), right: Int32Array.from([5, 6, -1]) } } };
  const graph = standInModel({ selected_node_id: null });
  const unlink = linkTables({ pairs, graph });
  pairs.model.set("selected_row", 1);
  assert.equal(graph.get("selected_node_id"), 6);
  graph.set("selected_node_id", 5);
  assert.deepEqual([pairs.model.get("selected_row"), graph.get("selected_node_id")], [0, 5]);
  pairs.model.set("selected_row", 2);
  assert.equal(graph.get("selected_node_id"), 5);
  unlink();
  graph.set("selected_node_id", 0);
  assert.equal(pairs.model.get("selected_row"), 2);
});
