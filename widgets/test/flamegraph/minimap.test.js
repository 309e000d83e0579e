import assert from "node:assert/strict";
import { test } from "node:test";
import { dragged, gripAt } from "../../src/flamegraph/canvas/minimap.js";

const ENDS = { min: 0, max: 100 };

test("a pointer takes hold of an edge, of the window or of the axis", () => {
  const grips = (/** @type {number[]} */ xs) => xs.map((x) => gripAt(x, { left: 40, right: 80 }, false));
  assert.deepEqual(grips([10, 35, 45, 60, 75, 85, 90]), ["axis", "from", "from", "window", "to", "to", "axis"]);
});

test("of a narrow window the inside stays the window, and all of the axis is no window to move", () => {
  assert.deepEqual([50, 52, 54].map((x) => gripAt(x, { left: 50, right: 54 }, false)), ["from", "window", "to"]);
  assert.deepEqual([gripAt(3, { left: 0, right: 100 }, true), gripAt(50, { left: 0, right: 100 }, true)], ["from", "axis"]);
});

test("a drag resizes, moves or draws the window", () => {
  const camera = { from: 40, to: 60 };
  const to = (/** @type {string} */ grip, /** @type {number} */ at, /** @type {number} */ value) => dragged(grip, camera, at, value, ENDS);
  assert.deepEqual([to("from", 40, 20), to("to", 60, 90)], [{ from: 20, to: 60 }, { from: 40, to: 90 }]);
  assert.deepEqual([to("window", 50, 70), to("window", 50, 99)], [{ from: 60, to: 80 }, { from: 80, to: 100 }]);
  assert.deepEqual([to("axis", 10, 30), to("axis", 30, 10)], [{ from: 10, to: 30 }, { from: 10, to: 30 }]);
});

test("an edge that is dragged past the other one takes its place", () => {
  assert.deepEqual(dragged("from", { from: 40, to: 60 }, 40, 80, ENDS), { from: 60, to: 80 });
});
