import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { count, fixed, general, whole } from "../../src/shared/numbers.js";
import { change, dataSize, duration, flops, share } from "../../src/shared/units.js";

/** What the formats of Python's tables are tested with, too: tests/views/summary/test_formats.py. @type {Record<string, [number, string][]>} */
const FORMATS = JSON.parse(readFileSync(new URL("../../../tests/formats.json", import.meta.url), "utf8"));
/** @type {Record<string, (value: number) => string>} */
const FUNCTIONS = { duration, change, data_size: dataSize, flops, share, count, metric: (value) => general(value, 3), statistic: (value) => general(value, 4) };

for (const [name, cases] of Object.entries(FORMATS)) {
  test(`a ${name} reads as in Python's tables`, () => {
    assert.deepEqual(cases.map(([value]) => [value, FUNCTIONS[name](value)]), cases);
  });
}

test("numbers too large and too small for plain digits", () => {
  assert.deepEqual([1e21, 1e-5, 0.0001, 1e300, 5e-324, -0].map((value) => general(value, 3)), ["1e+21", "1e-05", "0.0001", "1e+300", "4.94e-324", "0"]);
  assert.deepEqual([whole(1e22), count(-1234567.9), count(12)], ["10000000000000000000000", "-1,234,567", "12"]);
  assert.deepEqual([fixed(Infinity, 1), general(-Infinity, 3), general(NaN, 3)], ["inf", "-inf", "nan"]);
});
