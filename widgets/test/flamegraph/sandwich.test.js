import assert from "node:assert/strict";
import { test } from "node:test";
import { rowsInside } from "../../src/flamegraph/data/frames.js";
import { heavyLinks } from "../../src/flamegraph/data/links.js";
import { mergedFrames } from "../../src/flamegraph/data/merge.js";
import { isCaller, sandwichFrames } from "../../src/flamegraph/data/sandwich.js";
import { sandwichLayout } from "../../src/flamegraph/layout/layout.js";
import { announcement, facts, siblings } from "../../src/flamegraph/views/describe.js";
import { Finder } from "../../src/flamegraph/views/finder.js";
import { movedTo } from "../../src/flamegraph/views/keys.js";
import { titleOf, Views } from "../../src/flamegraph/views/views.js";
import { pathText, step, totals, traceOf } from "../../test_helpers/trace.js";

/** An op that is called from two places, from one of them twice, and calls another one. */
const trace = traceOf([
  { op: "main", total: 100 }, { op: "f", total: 50, parent: 0 }, { op: "op", total: 30, parent: 1 }, { op: "inner", total: 10, parent: 2 },
  { op: "op", total: 5, parent: 1 }, { op: "g", total: 20, parent: 0, phase: "backward" }, { op: "op", total: 8, parent: 5, phase: "backward" },
]);
const CHOICE = { order: "heavy", group: "sandwich", clock: "host", color: "phase", op: "op" };
const merged = mergedFrames(trace, "host");
const sandwich = sandwichFrames(merged, merged.texts.indexOf("op"));
const frameOf = (/** @type {string} */ path) => Array.from({ length: sandwich.size }, (_, frame) => pathText(sandwich, frame)).indexOf(path);

test("an op has its callees with their time, and its callers with the time of the calls through them", () => {
  assert.deepEqual(totals(sandwich), { op: 43, "op>inner": 10, "op>f": 35, "op>f>main": 35, "op>g": 8, "op>g>main": 8 });
  const callers = Array.from({ length: sandwich.size }, (_, frame) => isCaller(sandwich, frame));
  assert.deepEqual([[...sandwich.count], [...sandwich.self], callers], [[3, 1, 2, 2, 1, 1], [33, 10, 0, 0, 0, 0], [false, false, true, true, true, true]]);
});

test("a call inside a call of the same name is a callee, and no time counts twice", () => {
  const rows = [{ op: "a", total: 20 }, { op: "op", total: 10, parent: 0 }, { op: "op", total: 6, parent: 1 }, { op: "b", total: 1, parent: 2 }];
  const nested = mergedFrames(traceOf(rows), "host");
  assert.deepEqual(totals(sandwichFrames(nested, nested.texts.indexOf("op"))), { op: 10, "op>op": 6, "op>op>b": 1, "op>a": 10 });
});

test("an op that calls its own caller's name keeps both apart", () => {
  const round = mergedFrames(traceOf([{ op: "a", total: 20 }, { op: "op", total: 10, parent: 0 }, { op: "a", total: 4, parent: 1 }]), "host");
  const frames = sandwichFrames(round, round.texts.indexOf("op"));
  assert.deepEqual(Array.from(frames.name, (name) => frames.texts[name]), ["op", "a", "a (caller)"]);
  assert.deepEqual([...frames.total], [10, 4, 10]);
});

test("all callers of one depth have no more time than the op, all callees neither", () => {
  const frames = mergedFrames(step(), "host");
  const { total, parent, size } = sandwichFrames(frames, frames.texts.indexOf("aten.mm"));
  assert.equal(total[0], 70);
  for (let frame = 0; frame < size; frame += 1) {
    const below = Array.from(parent.keys()).filter((child) => parent[child] === frame && child > 0);
    assert.ok(below.reduce((sum, child) => sum + total[child], 0) <= total[frame] * (frame === 0 ? 2 : 1));
  }
});

test("callers lie above the op, the nearest next to it, callees below", () => {
  const { row, left, blocks, rowCount } = sandwichLayout(sandwich, heavyLinks(sandwich));
  const at = (/** @type {string} */ path) => [row[frameOf(path)], left[frameOf(path)]];
  assert.deepEqual(["op>f>main", "op>g>main", "op>f", "op>g", "op", "op>inner"].map(at), [[1, 0], [1, 35], [2, 0], [2, 35], [4, 0], [5, 0]]);
  assert.deepEqual([rowCount, blocks.map(({ name, first, count }) => [name, first, count])], [6, [["called by", 1, 2], ["the op and what it calls", 4, 2]]]);
});

test("an op without callers, and a name that is not there", () => {
  const root = sandwichFrames(merged, merged.texts.indexOf("main"));
  assert.deepEqual(sandwichLayout(root, heavyLinks(root)).blocks.map(({ name }) => name), ["the op and what it calls"]);
  const none = sandwichFrames(merged, -1);
  assert.deepEqual([none.size, sandwichLayout(none, heavyLinks(none)).rowCount], [0, 0]);
});

test("a caller holds the calls of the op that came through it", () => {
  const rows = (/** @type {string} */ path) => [...rowsInside(sandwich, frameOf(path))];
  assert.deepEqual([rows("op"), rows("op>f"), rows("op>g>main"), rows("op>inner")], [[2, 3, 4, 6], [2, 3, 4], [6], [3]]);
});

test("arrows lead up to callers and down to callees, and back to the op", () => {
  const view = new Views(trace, null).view(CHOICE);
  const to = (/** @type {string} */ key, /** @type {string} */ path) => pathText(view.frames, movedTo(key, view, frameOf(path), false));
  assert.deepEqual([to("ArrowUp", "op"), to("ArrowUp", "op>f"), to("ArrowDown", "op>f>main"), to("ArrowRight", "op>f")], ["op>f", "op>f>main", "op>f", "op>g"]);
  assert.deepEqual([to("ArrowDown", "op"), to("ArrowUp", "op>inner"), movedTo("ArrowDown", view, frameOf("op>inner"), false)], ["op>inner", "op", -1]);
  assert.deepEqual([...siblings(view, frameOf("op>inner"))], [frameOf("op>inner")]);
});

test("a caller is called one, with the time of the calls from it", () => {
  const view = new Views(trace, null).view(CHOICE);
  assert.equal(announcement(view, frameOf("op>f")), "f, a caller, 35.0 µs, 81.4 % of op, 2 calls, depth 2, 1 of 2");
  assert.deepEqual(facts(view, trace, frameOf("op>f")), [["calls from here took", "35.0 µs · 81.4 % of op"], ["calls", "2"]]);
  assert.equal(titleOf(CHOICE), "callers and callees of op");
});

test("callers have the colors of their own calls", () => {
  const views = new Views(trace, null);
  const { categories, codes } = views.colors(views.view(CHOICE), CHOICE);
  const labels = ["op", "op>f", "op>g", "op>g>main"].map((path) => categories[codes[frameOf(path)]].label);
  assert.deepEqual(labels, ["several", "forward", "backward", "forward"]);
});

test("a search counts matches, but adds up no time that callers and callees share", () => {
  const finder = new Finder();
  const view = new Views(trace, null).view(CHOICE);
  finder.run("main|inner", view);
  assert.deepEqual([finder.summary(view), finder.meaning(view)], ["3 matches", ""]);
});

test("a frame leads to its op's sandwich, no frame to that of the op with the most time of its own", () => {
  const views = new Views(trace, null);
  const calls = views.view({ ...CHOICE, group: "none" });
  const inner = views.view(CHOICE);
  assert.deepEqual([views.opOf(calls, 1, CHOICE), views.opOf(inner, frameOf("op>f"), CHOICE), views.opOf(calls, -1, CHOICE)], ["f", "f", "op"]);
  const byPhase = views.view({ ...CHOICE, group: "phase" });
  assert.equal(views.opOf(byPhase, 0, CHOICE), "op");
});

test("only the last sandwich is kept", () => {
  const views = new Views(trace, null);
  for (const op of ["op", "f", "g"]) views.colors(views.view({ ...CHOICE, op }), { ...CHOICE, op });
  assert.deepEqual([...views.known.keys()].filter((key) => key.includes("sandwich")), ["sandwich host false g", "colors sandwich host false g phase"]);
});
