import assert from "node:assert/strict";
import { test } from "node:test";
import { timelineFrames } from "../../src/flamegraph/data/frames.js";
import { mergedLayout, timelineLayout } from "../../src/flamegraph/layout/layout.js";
import { heavyLinks } from "../../src/flamegraph/data/links.js";
import { mergedFrames } from "../../src/flamegraph/data/merge.js";
import { heightOf, rowAt, topOf } from "../../src/flamegraph/layout/rows.js";
import { addVisible, firstBeyond, frameAt, Runs } from "../../src/flamegraph/layout/visible.js";
import { tooltipPlace } from "../../src/shared/picture/tooltip_place.js";
import { step, traceOf } from "../../test_helpers/trace.js";

const TRACKS = [{ name: "thread 0", kind: "host" }, { name: "idle", kind: "host" }, { name: "stream 7", kind: "device" }];
const rowItems = (/** @type {any} */ { starts, items }, /** @type {number} */ row) => [...items.subarray(starts[row], starts[row + 1])];

/** @param {any} layout @param {number} row @param {{from: number, to: number, pixels: number}} view */
function drawn(layout, row, view) {
  const runs = new Runs();
  addVisible(layout.rows, row, view, new Uint8Array(layout.row.length), runs);
  return Array.from({ length: runs.count }, (_, run) => [runs.left[run], runs.right[run], runs.frame[run]]);
}

test("the timeline has a row for each depth, in order of start", () => {
  const { rows, rowCount, min, max, blocks } = timelineLayout(step());
  assert.deepEqual([rowCount, min, max], [3, 0, 100]);
  assert.deepEqual([rowItems(rows, 1), rowItems(rows, 2)], [[1, 3, 6], [2, 4, 5]]);
  assert.equal(blocks[0].hasHeading, false);
});

test("tracks stack below headings, and empty ones are left out", () => {
  const { row, blocks } = timelineLayout(traceOf([{ op: "a", total: 5 }, { op: "b", total: 2, parent: 0 }, { op: "k", total: 4, track: 2 }], TRACKS));
  assert.deepEqual([...row], [1, 2, 4]);
  assert.deepEqual(blocks.map(({ name, first, count }) => [name, first, count]), [["thread 0", 1, 2], ["stream 7", 4, 1]]);
});

test("what overlaps goes one row down, and what is out of order is put in order", () => {
  const overlapping = timelineLayout(traceOf([{ op: "a", total: 5, start: 0 }, { op: "b", total: 5, start: 3 }, { op: "c", total: 2, start: 5 }]));
  assert.deepEqual([...overlapping.row], [0, 1, 0]);
  const late = timelineLayout(traceOf([{ op: "a", total: 1, start: 8 }, { op: "b", total: 1, start: 0, parent: -1 }, { op: "c", total: 9, start: 0 }]));
  assert.deepEqual(rowItems(late.rows, late.row[1]).at(0), 1);
});

test("merged frames lie side by side inside their parent", () => {
  const frames = mergedFrames(traceOf([{ op: "a", total: 10 }, { op: "b", total: 3, parent: 0 }, { op: "c", total: 4, parent: 0 }, { op: "d", total: 20 }]), "host");
  const { left, row, max } = mergedLayout(frames, heavyLinks(frames));
  assert.deepEqual([[...left], [...row], max], [[20, 24, 20, 0], [0, 1, 1, 0], 30]);
});

test("no frame at all is a layout too", () => {
  const { rowCount, min, max } = timelineLayout(traceOf([]));
  assert.deepEqual([rowCount, min, max], [0, 0, 1]);
});

test("only what is in view is drawn, cut at its edges", () => {
  const layout = timelineLayout(traceOf(Array.from({ length: 10 }, (_, index) => ({ op: "a", total: 10, start: index * 10 }))));
  assert.deepEqual(drawn(layout, 0, { from: 25, to: 45, pixels: 20 }), [[0, 5, 2], [5, 15, 3], [15, 20, 4]]);
});

test("boxes below a pixel merge into runs, and gaps stay", () => {
  const rows = Array.from({ length: 2000 }, (_, index) => ({ op: "a", total: 0.05, start: index * 0.05 + (index < 1000 ? 0 : 50) }));
  const runs = drawn(timelineLayout(traceOf(rows)), 0, { from: 0, to: 150, pixels: 150 });
  assert.deepEqual(runs, [[0, 50, -1], [100, 150, -1]]);
});

test("a frame without duration is drawn one pixel wide, a wide one after it is not lost", () => {
  const layout = timelineLayout(traceOf([{ op: "a", total: 0, start: 10 }, { op: "b", total: 50, start: 10.2 }]));
  assert.deepEqual(drawn(layout, 0, { from: 0, to: 100, pixels: 100 }), [[10, 11, -1], [11, 60, 1]]);
});

test("a million boxes cost a number of runs that the pixels bound", () => {
  const count = 200_000;
  const layout = timelineLayout(traceOf(Array.from({ length: count }, (_, index) => ({ op: "a", total: 1, start: index }))));
  assert.equal(drawn(layout, 0, { from: 0, to: count, pixels: 1000 }).length, 1);
  assert.equal(drawn(layout, 0, { from: 500, to: 510, pixels: 1000 }).length, 10);
});

test("a place finds its frame, and a narrow one nearby", () => {
  const { rows } = timelineLayout(traceOf([{ op: "a", total: 5, start: 0 }, { op: "b", total: 0, start: 10 }, { op: "c", total: 5, start: 20 }]));
  assert.deepEqual([2, 9.5, 15, 22, 30].map((value) => frameAt(rows, 0, value, 1)), [0, 1, -1, 2, -1]);
  assert.deepEqual([frameAt(rows, 7, 2, 1), frameAt(rows, -1, 2, 1)], [-1, -1]);
});

test("the first beyond a value is found from any start", () => {
  const edges = Float64Array.of(1, 2, 2, 5, 9);
  assert.deepEqual([0, 1, 2, 5, 9].map((value) => firstBeyond(edges, 0, 5, value)), [0, 1, 3, 4, 5]);
  assert.equal(firstBeyond(edges, 3, 5, 0), 3);
});

test("in flame orientation each block stands on its root", () => {
  const layout = timelineLayout(traceOf([{ op: "a", total: 5 }, { op: "b", total: 2, parent: 0 }, { op: "k", total: 4, track: 2 }], TRACKS));
  assert.deepEqual([topOf(layout, 1, false), topOf(layout, 1, true), topOf(layout, 2, true), topOf(layout, 4, true)], [36, 54, 36, 90]);
  assert.deepEqual([rowAt(layout, 40, false), rowAt(layout, 40, true), heightOf(layout)], [1, 2, 108]);
});

test("a tooltip flips at the right and lower edge and never leaves on the left", () => {
  const [size, room] = [{ width: 100, height: 50 }, { width: 300, height: 200 }];
  assert.deepEqual(tooltipPlace({ x: 10, y: 10 }, size, room), { left: 22, top: 22 });
  assert.deepEqual(tooltipPlace({ x: 290, y: 190 }, size, room), { left: 178, top: 128 });
  assert.deepEqual(tooltipPlace({ x: 60, y: 10 }, { width: 280, height: 50 }, room), { left: 4, top: 22 });
});

test("the timeline's frames are its rows", () => {
  const frames = timelineFrames(step());
  assert.deepEqual([frames.size, frames.isTimeline, [...frames.of]], [7, true, [0, 1, 2, 3, 4, 5, 6]]);
});
