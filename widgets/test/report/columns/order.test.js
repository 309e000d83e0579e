import assert from "node:assert/strict";
import { test } from "node:test";
import { ordered } from "../../../src/report/columns/order.js";

const TABLE = {
  count: 5,
  texts: { op: { values: ["b", "a"], codes: Int32Array.from([0, 1, -1, 0, 1]) } },
  numbers: { flops: Float64Array.from([2, NaN, -Infinity, 2, 1e300]), zero: Float64Array.from([0, -0, 0, -0, 0]) },
};
const ALL = Int32Array.from([0, 1, 2, 3, 4]);

/** @param {string} name @param {boolean} isDescending */
const order = (name, isDescending) => [...ordered(TABLE, ALL, name, isDescending)];

test("ties keep their order both ways, and missing values come last", () => {
  assert.deepEqual([order("op", false), order("op", true)], [[1, 4, 0, 3, 2], [0, 3, 1, 4, 2]]);
  assert.deepEqual([order("flops", false), order("flops", true)], [[2, 0, 3, 4, 1], [4, 0, 3, 2, 1]]);
  assert.deepEqual(order("zero", true), [0, 1, 2, 3, 4]);
});

test("only the rows that are asked for are ordered", () => {
  assert.deepEqual([...ordered(TABLE, Int32Array.from([2, 4]), "flops", true)], [4, 2]);
  assert.deepEqual([...ordered(TABLE, Int32Array.from([2, 4]), "op_id", true)], [4, 2]);
});

test("a column that is not there is said", () => {
  assert.throws(() => order("speed", false), /^OptionError: The table has no column 'speed'; known are flops, op, zero\.$/);
});
