import assert from "node:assert/strict";
import { test } from "node:test";
import { changeMark, changeText } from "../../src/flamegraph/views/describe.js";
import { difference, REMOVED, SLOWER, ADDED, SAME, FASTER } from "../../src/flamegraph/data/difference.js";
import { mergedFrames } from "../../src/flamegraph/data/merge.js";
import { lines, sorted, statusText } from "../../src/flamegraph/frame_table/lines.js";
import { linksOf } from "../../src/flamegraph/data/links.js";
import { Views } from "../../src/flamegraph/views/views.js";
import { pathText, repeated, single, traceOf } from "../../test_helpers/trace.js";

const NOW = [{ op: "step", total: 100 }, { op: "mm", total: 60, parent: 0 }, { op: "relu", total: 10, parent: 0 }, { op: "new op", total: 20, parent: 0 }];
const BEFORE = [{ op: "step", total: 98 }, { op: "relu", total: 20, parent: 0 }, { op: "mm", total: 40, parent: 0 }, { op: "old op", total: 30, parent: 0 }, { op: "inner", total: 5, parent: 3 }];
/** @param {any[]} now @param {any[]} before @param {import("../../src/flamegraph/data/data.js").Noise} noise */
const compared = (now, before, noise) => difference(mergedFrames(traceOf(now), "host"), mergedFrames(traceOf(before), "host"), noise, "none host");
const delta = compared(NOW, BEFORE, single());
const found = Object.fromEntries(Array.from({ length: delta.frames.size }, (_, frame) => [pathText(delta.frames, frame), frame]));
const textOf = (/** @type {string} */ path) => changeText({ difference: delta, frame: found[path] });

test("frames are told apart by path into same, slower, faster, added and removed", () => {
  assert.deepEqual(["step", "step>mm", "step>relu", "step>new op", "step>old op", "step>old op>inner"].map(textOf), [
    "+2.00 µs (+2.0 %), noise unknown", "slower: +20.0 µs (+50.0 %), noise unknown", "faster: −10.0 µs (−50.0 %), noise unknown",
    "added", "removed, was 30.0 µs", "removed, was 5.00 µs",
  ]);
});

test("what was removed keeps its former width, and makes room in what held it", () => {
  assert.deepEqual([delta.frames.width[found["step>old op"]], delta.frames.total[found["step>old op"]]], [30, 0]);
  assert.deepEqual([delta.frames.width[found.step], delta.frames.total[found.step], delta.before[found.step]], [130, 100, 98]);
});

test("boxes bear the change as a mark, not as a color alone", () => {
  const mark = (/** @type {string} */ path) => changeMark({ difference: delta, frame: found[path] });
  assert.deepEqual(["step", "step>mm", "step>relu", "step>new op", "step>old op"].map(mark), ["", "▲ +50 %", "▼ −50 %", "added", "removed"]);
  assert.equal(changeMark(null), "");
});

test("single recordings are colored by what hardly ever differs in equal ones: a factor, and a share of all time", () => {
  const before = [{ op: "step", total: 100 }, { op: "a", total: 20, parent: 0 }, { op: "b", total: 20, parent: 0 }, { op: "c", total: 1, parent: 0 }, { op: "d", total: 20, parent: 0 }];
  const now = before.map((row, index) => ({ ...row, total: [100, 40, 39, 2.5, 10][index] }));
  assert.deepEqual([...compared(now, before, single(2, 0.02)).codes], [SAME, SLOWER, SAME, SAME, FASTER]);
});

const VERDICTS = repeated([
  { row: 0, usual: 98, change: 2, noise: 10 }, { row: 1, usual: 40, change: 20, noise: 6 }, { row: 2, own: 1, usual: 20, change: -10, noise: 4 },
]);

test("with repeats a frame is slower or faster if its change is beyond their noise, whatever its size", () => {
  const judged = compared(NOW, BEFORE, VERDICTS);
  const text = (/** @type {string} */ path) => changeText({ difference: judged, frame: found[path] });
  assert.deepEqual([...judged.codes], [SAME, SLOWER, FASTER, ADDED, REMOVED, REMOVED]);
  assert.deepEqual(["step", "step>mm", "step>relu", "step>new op", "step>old op"].map(text), [
    "within noise (+2.0 %, noise ±10.2 %)", "slower: +20.0 µs (+50.0 %), beyond noise ±15.0 %",
    "self time faster: −10.0 µs (−50.0 %), beyond noise ±20.0 %", "added", "removed, was 30.0 µs",
  ]);
  assert.deepEqual(["step", "step>mm", "step>relu"].map((path) => changeMark({ difference: judged, frame: found[path] })), ["", "▲ +50 %", "▼ self −50 %"]);
});

test("a frame that is not among the judged ones is too short for it", () => {
  const judged = compared(NOW, BEFORE, repeated([{ row: 0, usual: 98, change: 2, noise: 10 }]));
  assert.deepEqual([judged.codes[found["step>mm"]], changeText({ difference: judged, frame: found["step>mm"] })], [SAME, "too short to be judged"]);
});

test("noise that leaves nothing to say is not given to the digit, nor is a share of no time", () => {
  const judged = compared(NOW, BEFORE, repeated([{ row: 0, usual: 5, change: 3, noise: 50 }, { row: 1, usual: 0, change: 3, noise: 2 }, { row: 2, usual: 0, change: 1, noise: 2 }]));
  const text = (/** @type {string} */ path) => changeText({ difference: judged, frame: found[path] });
  assert.deepEqual(["step", "step>mm", "step>relu"].map(text), [
    "within noise (+60.0 %, noise over ±1000 %)", "slower: +3.00 µs, beyond noise ±2.00 µs", "within noise (+1.00 µs, noise ±2.00 µs)",
  ]);
  assert.equal(changeMark({ difference: judged, frame: found["step>mm"] }), "▲");
});

test("a grouping's frame is found from a row below it", () => {
  const rows = [{ op: "mm", total: 30, module: "Net.a" }, { op: "mm", total: 20, module: "Net.b" }];
  const views = new Views(traceOf(rows), traceOf(rows), repeated([{ row: 1, up: 2, usual: 20, change: 9, noise: 5 }, { row: 0, up: 3, usual: 50, change: -9, noise: 5 }]));
  const { frames, codes } = views.difference("module", "host");
  const changed = Array.from(codes, (code, frame) => [pathText(frames, frame), code]).filter(([, code]) => code !== SAME);
  assert.deepEqual(changed, [["Net", FASTER], ["Net>b", SLOWER]]);
});

test("an op that bears the name of a module is not taken for it", () => {
  // The row of the root module is an op of the class's name; in the grouping the module's path has that name too.
  const rows = [{ op: "RWKV4", total: 50, level: "module", module: "RWKV4" }, { op: "mm", total: 30, parent: 0, module: "RWKV4" }];
  const views = new Views(traceOf(rows), traceOf(rows), single());
  for (const group of ["none", "module", "op", "phase"]) {
    const { codes, frames } = views.difference(group, "host");
    assert.deepEqual([group, [...codes], frames.size], [group, [...codes].fill(SAME), views.mergedFrames(views.trace, group, "host").size]);
  }
});

test("a module without a path is not a range of its class's name", () => {
  const side = (/** @type {string} */ level) => mergedFrames(traceOf([{ op: "Net", total: 50, level, module: "" }, { op: "Net", total: 9, level: "module", module: "net" }]), "host");
  assert.deepEqual([...difference(side("module"), side("range"), single(), "none host").codes], [ADDED, SAME, REMOVED]);
});

test("time order says what it cannot draw, the merged view has it", () => {
  const views = new Views(traceOf(NOW), traceOf(BEFORE), single(2, 0.005));
  const choice = { order: "time", group: "none", clock: "host", color: "difference" };
  assert.match(views.legendNote(views.view(choice), choice) ?? "", /2 removed frames not drawn in time order: choose left heavy$/);
  const heavy = { ...choice, order: "heavy" };
  const note = "one run each: noise unknown; colored: at least 2 times as long or as short, by 0.5 % of all time · record both with repeats (-r 10)";
  assert.equal(views.legendNote(views.view(heavy), heavy), note);
  assert.equal(views.legendNote(views.view(choice), { ...choice, color: "phase" }), null);
});

test("the legend says what the noise is known from, and calls the rest within it", () => {
  const choice = { order: "heavy", group: "none", clock: "host", color: "difference" };
  const shown = (/** @type {import("../../src/flamegraph/data/data.js").Noise} */ noise) => {
    const views = new Views(traceOf(NOW), traceOf(BEFORE), noise);
    const view = views.view(choice);
    return [views.legendNote(view, choice)?.split(";")[0], views.colors(view, choice).categories[0].label];
  };
  assert.deepEqual(shown(VERDICTS), ["slower, faster: beyond the noise of 12 repeats, 10 before", "within noise"]);
  assert.deepEqual(shown(single()), ["one run each: noise unknown", "no clear change"]);
  assert.deepEqual(shown({ ...single(), repeats: [1, 10] }), ["noise unknown: repeats of one side only", "no clear change"]);
});

test("two equal traces differ nowhere", () => {
  const equal = compared(NOW, NOW, single());
  assert.deepEqual([...equal.codes], [0, 0, 0, 0]);
});

test("the timeline takes the colors of its merged frames", () => {
  const views = new Views(traceOf(NOW), traceOf(BEFORE), single());
  const choice = { order: "time", group: "none", clock: "host", color: "difference" };
  const view = views.view(choice);
  assert.deepEqual([...views.colors(view, choice).codes], [0, 1, 2, 3]);
  assert.equal(changeText(/** @type {any} */ (views.changes(view, choice)(1))), "slower: +20.0 µs (+50.0 %), noise unknown");
  assert.equal(views.changes(view, { ...choice, color: "phase" })(1), null);
});

test("the table of a difference has both sides and what was removed", () => {
  const list = lines(delta.frames, linksOf(delta.frames), { top: -1, isMatch: null, difference: delta });
  const shown = sorted(list, delta.frames.texts, { column: "change", isDescending: true });
  assert.deepEqual(shown.slice(0, 3).map(({ name, self, selfBefore, count, countBefore }) => [delta.frames.texts[name], self, selfBefore, count, countBefore]), [
    ["old op", 0, 25, 0, 1], ["mm", 60, 40, 1, 1], ["new op", 20, 0, 1, 0],
  ]);
});

test("the table says of a name what its frames say, those that changed first", () => {
  const blocks = (/** @type {number} */ time) => [0, 1].flatMap((index) => [{ op: "Block", total: 50, level: "module", module: `Net.${index}` }, { op: "mm", total: time, parent: 2 * index }]);
  const told = (/** @type {import("../../src/flamegraph/data/data.js").Noise} */ noise) => {
    const both = compared(blocks(30), blocks(20), noise);
    const list = lines(both.frames, linksOf(both.frames), { top: -1, isMatch: null, difference: both });
    return sorted(list, both.frames.texts, { column: "status", isDescending: true }).map((line) => [both.frames.texts[line.name], statusText(line, both)]);
  };
  const block = (/** @type {number} */ row) => ({ row, usual: 50, change: 1, noise: 5 });
  const mm = (/** @type {number} */ row, /** @type {number} */ noise) => ({ row, usual: 20, change: 10, noise });
  assert.deepEqual(told(repeated([block(0), block(2), mm(1, 5), mm(3, 20)])), [
    ["mm", "1 slower of 2 frames"], ["Net.0 (Block)", "within noise (+2.0 %, noise ±10.0 %)"], ["Net.1 (Block)", "within noise (+2.0 %, noise ±10.0 %)"],
  ]);
  assert.equal(told(repeated([mm(1, 20), mm(3, 20)]))[0][1], "all within noise");
  assert.deepEqual([told(single())[0], told(single(2))[0]], [["mm", "all 2 slower, noise unknown"], ["mm", "no clear change, noise unknown"]]);
});
