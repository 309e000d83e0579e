import assert from "node:assert/strict";
import { test } from "node:test";
import { shareAt } from "../../src/diff_table/scale.js";
import { binsBelow, spreadText } from "../../src/diff_table/spread.js";

const spread = {
  name: "noise_ratio", label: "noise ratio", low: 1e-2, high: 1e2, bins: [1, 30, 0, 2], zero: 1200, infinite: 2, missing: 0, threshold: 8, above: 4,
};

test("a value has its place on a logarithmic axis, one beyond its ends has that of the end", () => {
  assert.deepEqual([1e-2, 1, 1e2, 1e-3, 1e3].map((value) => shareAt(value, spread)), [0, 0.5, 1, 0, 1]);
});

test("bins are dimmed that hold nothing of a least value; the last one never is", () => {
  assert.deepEqual([null, undefined, 1e-2, 0.05, 0.11, 1, 99, 1e5].map((least) => binsBelow(least, spread)), [0, 0, 0, 0, 1, 2, 3, 3]);
});

test("the text says range, mode, what has no place, and the threshold", () => {
  assert.equal(
    spreadText(spread),
    "noise ratio: 0.01 to 100 on a logarithmic axis, most from 0.1 to 1, 1,200 zero, 2 infinite, 4 above the threshold 8",
  );
  assert.equal(
    spreadText({ ...spread, label: "local error", zero: 0, infinite: 0, missing: 3, threshold: null, above: null }),
    "local error: 0.01 to 100 on a logarithmic axis, most from 0.1 to 1, 3 null",
  );
});
