import assert from "node:assert/strict";
import { test } from "node:test";
import { columnsOf, nextSort } from "../../src/table/columns.js";
import { everything, isFiltered } from "../../src/op_table/query.js";

const [op, time, start] = columnsOf(["op", "self_time_us", "start_us"]);

test("columns keep the kernel's order; one that is not known gets a plain look", () => {
  assert.deepEqual(columnsOf(["op", "heat"]).map(({ label }) => label), ["op", "heat"]);
  assert.equal(columnsOf(["heat"])[0].isNumber, false);
});

test("times sort slowest first, names and starts upwards, the same column turns around", () => {
  const none = [{ column: "op_id", descending: false }];
  assert.deepEqual(nextSort(none, time), [{ column: "self_time_us", descending: true }]);
  assert.deepEqual(nextSort(none, op), [{ column: "op", descending: false }]);
  assert.deepEqual(nextSort(none, start), [{ column: "start_us", descending: false }]);
  assert.deepEqual(nextSort([{ column: "op", descending: false }], op), [{ column: "op", descending: true }]);
});

test("a column that is added sorts what those before leave equal, and turns around in its place", () => {
  const both = nextSort([{ column: "op", descending: false }], time, true);
  assert.deepEqual(both, [{ column: "op", descending: false }, { column: "self_time_us", descending: true }]);
  assert.deepEqual(nextSort(both, op, true), [{ column: "op", descending: true }, { column: "self_time_us", descending: true }]);
  assert.deepEqual(nextSort(both, op), [{ column: "op", descending: true }]);
});

test("a query is filtered if any condition is given; blanks are none", () => {
  assert.equal(isFiltered(everything()), false);
  assert.equal(isFiltered({ ...everything(), search: "  ", filters: { op: " " } }), false);
  assert.equal(isFiltered({ ...everything(), filters: { op: "mm" } }), true);
  assert.equal(isFiltered({ ...everything(), module: "" }), true);
  assert.equal(isFiltered({ ...everything(), outside_modules: true }), true);
});
