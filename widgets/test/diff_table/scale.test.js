import assert from "node:assert/strict";
import { test } from "node:test";
import { stepOf, STEPS, thresholdAt, thresholdText } from "../../src/diff_table/scale.js";

const scale = { low: 1e-6, high: 1e2 };

test("the first place asks for nothing, the second for the smallest value, the last for the largest", () => {
  assert.equal(thresholdAt(0, scale), null);
  assert.equal(thresholdAt(1, scale), 1e-6);
  assert.equal(thresholdAt(STEPS, scale), 1e2);
  assert.equal(thresholdAt(STEPS + 5, scale), 1e2);
});

test("places run evenly over the logarithm and never above the exact value", () => {
  for (let place = 1; place <= STEPS; place += 1) {
    const exact = 1e-6 * 1e8 ** ((place - 1) / (STEPS - 1));
    const threshold = Number(thresholdAt(place, scale));
    assert.ok(threshold <= exact * (1 + 1e-9) && threshold > 0.9 * exact, `${place}: ${threshold} of ${exact}`);
  }
});

test("a threshold has two digits and its own place again", () => {
  for (const step of [0, 1, 17, 42, STEPS]) assert.ok(Math.abs(stepOf(thresholdAt(step, scale), scale) - step) <= 1);
  assert.equal(thresholdAt(30, { low: 1.2345, high: 9.8765 }), 3.4);
  assert.equal(stepOf(1e9, scale), STEPS);
  assert.equal(stepOf(3, { low: 3, high: 3 }), 1);
});

test("what a threshold says", () => {
  assert.deepEqual([null, 0.5, 12, 26000, 0.0012].map(thresholdText), ["any", "≥ 0.5", "≥ 12", "≥ 2.6e+4", "≥ 1.2e-3"]);
});
