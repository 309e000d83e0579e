import assert from "node:assert/strict";
import { test } from "node:test";
import { changeMark, changeText } from "../src/lib/flame/describe.js";
import { compared, difference, GONE, GREW, NEW, SAME, SHRANK } from "../src/lib/flame/difference.js";
import { mergedFrames } from "../src/lib/flame/merge.js";
import { lines, sorted } from "../src/lib/flame/twin.js";
import { linksOf } from "../src/lib/flame/links.js";
import { Views } from "../src/lib/flame/views.js";
import { pathText, traceOf } from "../test_helpers/trace.js";

const NOW = [{ op: "step", total: 100 }, { op: "mm", total: 60, parent: 0 }, { op: "relu", total: 10, parent: 0 }, { op: "new op", total: 20, parent: 0 }];
const BEFORE = [{ op: "step", total: 98 }, { op: "relu", total: 20, parent: 0 }, { op: "mm", total: 40, parent: 0 }, { op: "old op", total: 30, parent: 0 }, { op: "inner", total: 5, parent: 3 }];
const delta = difference(mergedFrames(traceOf(NOW), "host"), mergedFrames(traceOf(BEFORE), "host"));
const found = Object.fromEntries(Array.from({ length: delta.frames.size }, (_, frame) => [pathText(delta.frames, frame), frame]));
const textOf = (/** @type {string} */ path) => changeText({ difference: delta, frame: found[path] });

test("frames are told apart by path into same, grew, shrank, new and gone", () => {
  assert.deepEqual(["step", "step>mm", "step>relu", "step>new op", "step>old op", "step>old op>inner"].map(textOf), [
    "same", "grew +20.0 µs (+50.0 %)", "shrank −10.0 µs (−50.0 %)", "new", "gone, was 30.0 µs", "gone, was 5.00 µs",
  ]);
});

test("what is gone keeps its former width, and makes room in what held it", () => {
  assert.deepEqual([delta.frames.width[found["step>old op"]], delta.frames.total[found["step>old op"]]], [30, 0]);
  assert.deepEqual([delta.frames.width[found.step], delta.frames.total[found.step], delta.before[found.step]], [130, 100, 98]);
});

test("boxes bear the change as a mark, not as a colour alone", () => {
  const mark = (/** @type {string} */ path) => changeMark({ difference: delta, frame: found[path] });
  assert.deepEqual(["step", "step>mm", "step>relu", "step>new op", "step>old op"].map(mark), ["", "▲ +50 %", "▼ −50 %", "new", "gone"]);
  assert.equal(changeMark(null), "");
});

test("small changes are none", () => {
  assert.deepEqual([compared(104, 100), compared(106, 100), compared(94, 100), compared(2, 1, 5)], [SAME, GREW, SHRANK, SAME]);
});

test("an op that bears the name of a module is not taken for it", () => {
  // The row of the root module is an op of the class's name; in the grouping the module's path has that name too.
  const rows = [{ op: "RWKV4", total: 50, level: "module", module: "RWKV4" }, { op: "mm", total: 30, parent: 0, module: "RWKV4" }];
  const views = new Views(traceOf(rows), traceOf(rows));
  for (const group of ["none", "module", "op", "phase"]) {
    const { codes, frames } = views.difference(group, "host");
    assert.deepEqual([group, [...codes], frames.size], [group, [...codes].fill(SAME), views.mergedFrames(views.trace, group, "host").size]);
  }
});

test("a module without a path is not a range of its class's name", () => {
  const side = (/** @type {string} */ level) => mergedFrames(traceOf([{ op: "Net", total: 50, level, module: "" }, { op: "Net", total: 9, level: "module", module: "net" }]), "host");
  assert.deepEqual([...difference(side("module"), side("range")).codes], [NEW, SAME, GONE]);
});

test("time order says what it cannot draw, the merged view has it", () => {
  const views = new Views(traceOf(NOW), traceOf(BEFORE));
  const choice = { order: "time", group: "none", clock: "host", color: "difference" };
  assert.match(views.legendNote(views.view(choice), choice) ?? "", /2 gone frames not drawn in time order: choose left heavy$/);
  const heavy = { ...choice, order: "heavy" };
  assert.equal(views.legendNote(views.view(heavy), heavy), "same: within 5 % of its time before");
  assert.equal(views.legendNote(views.view(choice), { ...choice, color: "phase" }), null);
});

test("two equal traces differ nowhere", () => {
  const equal = difference(mergedFrames(traceOf(NOW), "host"), mergedFrames(traceOf(NOW), "host"));
  assert.deepEqual([...equal.codes], [0, 0, 0, 0]);
});

test("the timeline takes the colours of its merged frames", () => {
  const views = new Views(traceOf(NOW), traceOf(BEFORE));
  const choice = { order: "time", group: "none", clock: "host", color: "difference" };
  const view = views.view(choice);
  assert.deepEqual([...views.colors(view, choice).codes], [0, 1, 2, 3]);
  assert.equal(changeText(/** @type {any} */ (views.changes(view, choice)(1))), "grew +20.0 µs (+50.0 %)");
  assert.equal(views.changes(view, { ...choice, color: "phase" })(1), null);
});

test("the table of a difference has both sides and what is gone", () => {
  const list = lines(delta.frames, linksOf(delta.frames), { top: -1, isMatch: null, difference: delta });
  const shown = sorted(list, delta.frames.texts, { column: "change", isDescending: true });
  assert.deepEqual(shown.slice(0, 3).map(({ name, self, selfBefore, count, countBefore }) => [delta.frames.texts[name], self, selfBefore, count, countBefore]), [
    ["old op", 0, 25, 0, 1], ["mm", 60, 40, 1, 1], ["new op", 20, 0, 1, 0],
  ]);
});
