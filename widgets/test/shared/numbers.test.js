import assert from "node:assert/strict";
import { test } from "node:test";
import { count, fixed, general, roundedTo, whole } from "../../src/shared/numbers.js";

test("exact middles go to the even digit, as in Python", () => {
  assert.deepEqual([0.5, 1.5, 2.5, -2.5].map((value) => fixed(value, 0)), ["0", "2", "2", "-2"]);
  assert.deepEqual([0.25, 0.35, 0.75, 9.25].map((value) => fixed(value, 1)), ["0.2", "0.3", "0.8", "9.2"]);
  assert.deepEqual([12.25, 1.125e-7, 2.5, 12345].map((value) => general(value, 3)), ["12.2", "1.12e-07", "2.5", "1.23e+04"]);
  assert.deepEqual([roundedTo(0.03125, 4), roundedTo(0.96875, 4), roundedTo(NaN, 4)], [0.0312, 0.9688, NaN]);
});

test("numbers too large and too small for plain digits", () => {
  assert.deepEqual([1e21, 1e-5, 0.0001, 1e300, 5e-324, -0].map((value) => general(value, 3)), ["1e+21", "1e-05", "0.0001", "1e+300", "4.94e-324", "-0"]);
  assert.deepEqual([fixed(1e22, 1), whole(1e22), count(-1234567.9), count(12)], ["10000000000000000000000.0", "10000000000000000000000", "-1,234,567", "12"]);
  assert.deepEqual([fixed(Infinity, 1), general(-Infinity, 3), general(NaN, 3)], ["inf", "-inf", "nan"]);
});
