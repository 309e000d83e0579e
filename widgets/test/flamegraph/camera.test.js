import assert from "node:assert/strict";
import { test } from "node:test";
import { between, clamped, fitted, panned, revealing, ticks, zoomed } from "../../src/flamegraph/layout/camera.js";
import { bytesAt, columnsInView, memoryCurve } from "../../src/flamegraph/layout/memory.js";
import { holding, Zoom } from "../../src/flamegraph/layout/zoom.js";

const ENDS = { min: 0, max: 100 };

test("zooming keeps the value below the pointer where it is, and stays within the ends", () => {
  assert.deepEqual(zoomed({ from: 0, to: 100 }, 2, 25, ENDS), { from: 12.5, to: 62.5 });
  assert.deepEqual(zoomed({ from: 0, to: 50 }, 0.1, 25, ENDS), { from: 0, to: 100 });
  assert.deepEqual(clamped({ from: 90, to: 130 }, ENDS), { from: 60, to: 100 });
});

test("nothing is nearer than a nanosecond", () => {
  const { from, to } = zoomed({ from: 10, to: 10.001 }, 100, 10, ENDS);
  assert.ok(Math.abs(to - from - 0.001) < 1e-9);
});

test("panning stops at the ends", () => {
  assert.deepEqual(panned({ from: 10, to: 30 }, 0.5, ENDS), { from: 20, to: 40 });
  assert.deepEqual(panned({ from: 10, to: 30 }, -3, ENDS), { from: 0, to: 20 });
});

test("a frame fills the view, also one without duration", () => {
  assert.deepEqual(fitted(20, 30, ENDS), { from: 20, to: 50 });
  const { from, to } = fitted(20, 0, ENDS);
  assert.ok(to > from && from <= 20 && to >= 20 && to - from < 0.01);
});

test("a frame in view leaves the view as it is; another moves it, a tiny one brings it nearer", () => {
  const view = { from: 0, to: 50 };
  assert.equal(revealing(view, 10, 20, ENDS), view);
  assert.deepEqual(revealing(view, 60, 20, ENDS), { from: 45, to: 95 });
  assert.deepEqual(revealing(view, 10, 0.5, ENDS), { from: 0, to: 25 });
  assert.equal(revealing({ from: 40, to: 50 }, 0, 100, ENDS).to, 50);
});

test("a movement ends where it goes", () => {
  assert.deepEqual(between({ from: 0, to: 100 }, { from: 20, to: 30 }, 1), { from: 20, to: 30 });
  assert.deepEqual(between({ from: 0, to: 100 }, { from: 20, to: 30 }, 0), { from: 0, to: 100 });
});

test("marks on the axis are round and no more than asked for", () => {
  assert.deepEqual(ticks({ from: 0, to: 100 }, 5).values, [0, 20, 40, 60, 80, 100]);
  assert.deepEqual(ticks({ from: 3.1, to: 3.9 }, 4).values.map((value) => value.toFixed(1)), ["3.2", "3.4", "3.6", "3.8"]);
});

test("the zoom goes back the way it came", () => {
  const zoom = new Zoom();
  zoom.go(4, { from: 0, to: 100 });
  zoom.go(9, { from: 10, to: 20 });
  assert.deepEqual([zoom.back(ENDS2), zoom.top], [{ from: 10, to: 20 }, 4]);
  assert.deepEqual([zoom.back(ENDS2), zoom.top, zoom.canGoBack], [{ from: 0, to: 100 }, -1, false]);
  assert.deepEqual([zoom.back(ENDS2), zoom.top], [ENDS2, -1]);
});

test("the frame in the breadcrumb is the nearest that holds all that is in view", () => {
  // A frame from 0 to 80 with one from 20 to 40 in it.
  const frames = { parent: Int32Array.of(-1, 0), width: Float64Array.of(80, 20) };
  const top = (/** @type {number} */ from, /** @type {number} */ to) => holding(frames, { left: Float64Array.of(0, 20), ...ENDS }, 1, { from, to });
  assert.deepEqual([top(20, 40), top(25, 30), top(25, 41), top(50, 100), top(0, 100)], [1, 1, 0, -1, -1]);
  assert.equal(holding(frames, { left: Float64Array.of(0, 20), ...ENDS }, -1, { from: 20, to: 40 }), -1);
});

test("a frame without duration holds the view that is fitted to it", () => {
  const frames = { parent: Int32Array.of(-1), width: Float64Array.of(0) };
  assert.equal(holding(frames, { left: Float64Array.of(50), ...ENDS }, 0, fitted(50, 0, ENDS)), 0);
});

const ENDS2 = { from: 0, to: 100 };

test("memory in view: held bytes go on, every pixel has its least and most", () => {
  const curve = memoryCurve({ device: "cpu", time: Float64Array.of(10, 20, 21, 60), allocated: Float64Array.of(100, 300, 50, 80) });
  const { low, high } = columnsInView(curve, { from: 0, to: 100 }, 10);
  assert.deepEqual([...high], [100, 300, 300, 50, 50, 80, 80, 80, 80, 80]);
  assert.deepEqual([...low], [0, 100, 50, 50, 50, 50, 80, 80, 80, 80]);
  assert.deepEqual([curve.peak, curve.peakTime, bytesAt(curve, 5), bytesAt(curve, 20.5), bytesAt(curve, 99)], [300, 20, 0, 300, 80]);
});

test("blocks of memory events lose no peak", () => {
  const time = Float64Array.from({ length: 10_000 }, (_, index) => index);
  const allocated = Float64Array.from(time, (_, index) => (index === 5003 ? 999 : index % 50));
  const { low, high } = columnsInView(memoryCurve({ device: "cpu", time, allocated }), { from: 0, to: 10_000 }, 4);
  assert.deepEqual([[...high], [...low]], [[49, 49, 999, 49], [0, 0, 0, 0]]);
});
