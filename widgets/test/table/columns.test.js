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
  const none = { sort: "op_id", is_descending: false };
  assert.deepEqual(nextSort(none, time), { sort: "self_time_us", is_descending: true });
  assert.deepEqual(nextSort(none, op), { sort: "op", is_descending: false });
  assert.deepEqual(nextSort(none, start), { sort: "start_us", is_descending: false });
  assert.deepEqual(nextSort({ sort: "op", is_descending: false }, op), { sort: "op", is_descending: true });
});

test("a query is filtered if any condition is given; blanks are none", () => {
  assert.equal(isFiltered(everything()), false);
  assert.equal(isFiltered({ ...everything(), search: "  ", filters: { op: " " } }), false);
  assert.equal(isFiltered({ ...everything(), filters: { op: "mm" } }), true);
  assert.equal(isFiltered({ ...everything(), module: "" }), true);
  assert.equal(isFiltered({ ...everything(), outside_modules: true }), true);
});
