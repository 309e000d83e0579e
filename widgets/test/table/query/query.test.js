import assert from "node:assert/strict";
import { test } from "node:test";
import * as diffs from "../../../src/diff_table/query.js";
import * as ops from "../../../src/op_table/query.js";
import { queryOf } from "../../../src/table/query/query.js";

/** @param {string} column @returns {any} */
const kindOf = (column) => (column.endsWith("_us") ? "time" : "text");
/** @param {object} change */
const opQuery = (change) => {
  const state = { ...ops.everything(), ...change };
  return queryOf(state, kindOf, ops.predicates(state));
};

test("everything is asked for in its natural order", () => {
  assert.deepEqual(opQuery({}), { query: { predicates: [], sort: [{ column: "op_id", descending: false }] }, errors: {} });
  assert.deepEqual(diffs.predicates(diffs.everything(), ["ok"]), []);
});

test("every word of a search must be in the op, its module or its source", () => {
  const [first, second] = /** @type {any[]} */ (opQuery({ search: " fc  a.b " }).query.predicates);
  assert.deepEqual(first.any.map((/** @type {any} */ one) => [one.column, one.op, one.value]), [["op", "contains", "fc"], ["module", "contains", "fc"], ["source", "contains", "fc"]]);
  assert.equal(second.any[0].value, "a.b");
});

test("a filter that cannot be used is left out and said", () => {
  const { query, errors } = opQuery({ filters: { op: "mm", self_time_us: "fast", module: " " } });
  assert.deepEqual(query.predicates, [{ column: "op", op: "contains", value: "mm" }]);
  assert.deepEqual(Object.keys(errors), ["self_time_us"]);
});

test("a module stands for what is below it, of its model; ops outside have none", () => {
  assert.deepEqual(opQuery({ module: "fc", model: "Net" }).query.predicates, [{ column: "module", op: "inside", value: "fc" }, { column: "model", op: "equals", value: "Net" }]);
  assert.deepEqual(opQuery({ module: "fc", outside_modules: true }).query.predicates, [{ column: "module", op: "null" }]);
});

test("level, phase and choices are exact", () => {
  assert.deepEqual(opQuery({ level: "aten", phase: "" }).query.predicates, [{ column: "level", op: "equals", value: "aten" }]);
  assert.deepEqual(diffs.predicates({ ...diffs.everything(), choices: { dtype: "float32" } }, []), [{ column: "dtype", op: "equals", value: "float32" }]);
});

test("a threshold leaves wrong rows without a figure", () => {
  const isWrong = { all: [{ column: "status", op: "in", value: ["ok"], not: true }, { column: "status", op: "null", not: true }] };
  assert.deepEqual(diffs.predicates({ ...diffs.everything(), thresholds: { noise_ratio: 2 } }, ["ok"]), [
    { any: [{ column: "noise_ratio", op: "at_least", value: 2 }, { all: [{ column: "noise_ratio", op: "null" }, isWrong] }] },
  ]);
});

test("a search looks through the columns that the table names", () => {
  const state = { ...diffs.everything("row"), search: "conv" };
  assert.deepEqual(queryOf(state, kindOf, [], ["name", "right_name"]).query, {
    predicates: [{ any: [{ column: "name", op: "contains", value: "conv" }, { column: "right_name", op: "contains", value: "conv" }] }],
    sort: [{ column: "row", descending: false }],
  });
});
