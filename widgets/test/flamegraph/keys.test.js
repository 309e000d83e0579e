import assert from "node:assert/strict";
import { test } from "node:test";
import { announcement, facts, nameOf, ownRows, singleRow } from "../../src/flamegraph/views/describe.js";
import { heaviestChild, KEYS, movedTo } from "../../src/flamegraph/views/keys.js";
import { actionOf } from "../../src/shared/keys.js";
import { placeOf, titleOf, Views } from "../../src/flamegraph/views/views.js";
import { change, counted, dataSize, duration, flops, share } from "../../src/shared/units.js";
import { step, traceOf } from "../../test_helpers/trace.js";

const CALLS = { order: "time", group: "none", clock: "host", color: "phase" };
const trace = step();
const view = new Views(trace, null).view(CALLS);
const merged = new Views(trace, null).view({ ...CALLS, order: "heavy" });

test("arrows lead to parent, child and siblings and stop at the ends", () => {
  const to = (/** @type {string} */ key, /** @type {number} */ frame, isFlame = false) => movedTo(key, view, frame, isFlame);
  assert.deepEqual([to("ArrowDown", 0), to("ArrowDown", 2), to("ArrowUp", 4), to("ArrowUp", 0)], [1, -1, 3, -1]);
  assert.deepEqual([to("ArrowRight", 1), to("ArrowRight", 6), to("ArrowLeft", 1), to("Home", 6), to("End", 1)], [3, 6, 1, 1, 6]);
  assert.deepEqual([to("ArrowUp", 0, true), to("ArrowDown", 4, true)], [1, 3]);
  assert.deepEqual([to("ArrowLeft", -1), to("x", 0)], [0, -1]);
});

test("the heaviest child is followed", () => {
  assert.deepEqual([heaviestChild(view, 0), heaviestChild(view, 3), heaviestChild(view, 4)], [3, 4, -1]);
});

test("keys have their actions, with a modifier none", () => {
  assert.deepEqual(["w", "W", "=", "0", "n", "N", " ", "Enter", "Escape", "q"].map((key) => actionOf(KEYS, { key })),
    ["nearer", "nearer", "nearer", "all", "match", "match", "select", "zoom", "back", undefined]);
  assert.equal(actionOf(KEYS, { key: "a", ctrlKey: true }), undefined);
});

test("a frame is announced by name, time, share, depth and place", () => {
  assert.equal(announcement(view, 5), "aten.relu, 5.00 µs, 5.0 % of the step, depth 3, 2 of 2");
  assert.equal(announcement(merged, merged.frames.of[4]), "aten.mm, 30.0 µs, 30.0 % of all host time, depth 3, 1 of 2");
});

test("what is shown is said with its order and its part", () => {
  const titles = [["none", "time"], ["none", "heavy"], ["module", "time"], ["op", "heavy"]].map(([group, order]) => titleOf({ ...CALLS, group, order }));
  assert.deepEqual(titles, ["time order", "left heavy, merged calls", "by module, in the order of first calls", "left heavy, by op"]);
  const places = [view, merged].flatMap((shown) => [placeOf(shown, { from: 0, to: 100 }), placeOf(shown, { from: 20, to: 60 })]);
  assert.deepEqual(places, ["all of 100 µs", "40.0 µs from 20.0 µs on, of 100 µs", "all host time, 100 µs", "40.0 % of all host time, 100 µs"]);
});

test("facts leave out what is not known", () => {
  assert.deepEqual(facts(view, trace, 4), [
    ["total", "30.0 µs · 30.0 % of the step"], ["self", "30.0 µs · 30.0 % of the step"], ["start", "20.0 µs"], ["FLOPs", "200 FLOP"],
    ["module", "blocks.1"], ["phase", "forward"],
  ]);
});

test("facts of merged calls add up and name what differs", () => {
  const rows = Array.from({ length: 5 }, (_, index) => ({ op: "mm", total: 2, flops: 10, bytes: 1024, shapes: `[${index}]` }));
  const many = traceOf(rows);
  const heavy = new Views(many, null).view({ ...CALLS, order: "heavy" });
  assert.deepEqual(facts(heavy, many, 0).slice(2), [
    ["calls", "5"], ["FLOPs", "50 FLOP"], ["bytes", "5.00 KiB"], ["phase", "forward"], ["shapes", "[0] · [1] · [2] · and 2 others"],
  ]);
  assert.deepEqual([ownRows(heavy.frames, 0), singleRow(heavy.frames, 0)], [[0, 1, 2, 3, 4], null]);
});

test("a frame of one row is that op", () => {
  assert.deepEqual([singleRow(view.frames, 4), singleRow(merged.frames, merged.frames.of[4])], [4, 4]);
});

test("names cannot turn or break the line", () => {
  const evil = new Views(traceOf([{ op: "a\u202eb\nc", total: 1 }]), null).view(CALLS);
  assert.equal(nameOf(evil.frames, 0), "a\ufffdb\ufffdc");
});

test("units read as they do in Python", () => {
  assert.deepEqual([0, 0.5, 1, 12.34, 999.6, 1500, 123_456, 2e6, NaN].map(duration), ["0 µs", "0.50 µs", "1.00 µs", "12.3 µs", "1.00 ms", "1.50 ms", "123 ms", "2.00 s", "—"]);
  assert.deepEqual([10, 1024, 1.5 * 2 ** 20, NaN].map(dataSize), ["10 B", "1.00 KiB", "1.50 MiB", "—"]);
  assert.deepEqual([flops(2e9), flops(12), share(0.1234), change(5), change(-5)], ["2.00 GFLOP", "12 FLOP", "12.3 %", "+5.00 µs", "−5.00 µs"]);
  assert.deepEqual([counted(1, "match"), counted(1200, "match"), counted(1, "frame"), counted(0, "frame")], ["1 match", "1,200 matches", "1 frame", "0 frames"]);
});
