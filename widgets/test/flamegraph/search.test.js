import assert from "node:assert/strict";
import { test } from "node:test";
import { Finder, totals } from "../../src/flamegraph/views/finder.js";
import { matcher, matchFrames, matchRows } from "../../src/flamegraph/views/search.js";
import { Views } from "../../src/flamegraph/views/views.js";
import { step, traceOf } from "../../test_helpers/trace.js";

const CALLS = { order: "time", group: "none", clock: "host", color: "phase" };
const timeline = (/** @type {any} */ trace) => new Views(trace, null).view(CALLS);

test("a search is a regular expression without case", () => {
  const { test: matches, problem } = matcher("^ATEN\\.(mm|relu)$");
  assert.equal(problem, "");
  assert.deepEqual(["aten.mm", "aten.mm.out", "x aten.mm"].map((text) => matches?.(text)), [true, false, false]);
  assert.equal(matcher("  ").test, null);
});

test("a broken one is explained in a sentence and looked for as text", () => {
  const { test: matches, problem } = matcher("f(x");
  assert.match(problem, /^Not a regular expression \(.+\); searching for it as plain text\.$/);
  assert.deepEqual([matches?.("call F(x)"), matches?.("fx")], [true, false]);
});

test("a match under a matching parent counts, but not its time", () => {
  const view = timeline(traceOf([{ op: "mm", total: 10 }, { op: "x", total: 8, parent: 0 }, { op: "mm", total: 5, parent: 1 }, { op: "mm", total: 2 }]));
  const { count, hostTotal, deviceTotal, isMatch } = matchFrames(view.frames, (text) => text === "mm", () => false);
  assert.deepEqual([count, hostTotal, deviceTotal, [...isMatch]], [3, 12, 0, [1, 0, 1, 1]]);
});

test("the rows of the matches are the same by both ways", () => {
  const view = timeline(step());
  const matches = matchFrames(view.frames, (text) => text === "aten.mm", () => false);
  const fast = matchRows(view.layout, matches);
  const slow = matchRows({ ...view.layout, isInOrder: false }, matches);
  assert.deepEqual([[...fast.starts], [...fast.items]], [[0, 0, 1, 3], [6, 2, 4]]);
  assert.deepEqual([[...slow.starts], [...slow.items]], [[0, 0, 1, 3], [6, 2, 4]]);
});

test("the finder says what it found and leads from match to match, around the end", () => {
  const view = timeline(step());
  const finder = new Finder();
  finder.run("mm", view);
  assert.equal(finder.summary(view), "3 matches · 70.0 % of the time");
  assert.deepEqual([finder.next(view, -1, 1), finder.next(view, 6, 1), finder.next(view, 4, 1), finder.next(view, 6, -1)], [6, 2, 6, 4]);
  assert.equal(finder.next(view, 3, 1), 6);
  finder.run("nothing like it", view);
  assert.deepEqual([finder.summary(view), finder.next(view, -1, 1)], ["no match", -1]);
  finder.run("", view);
  assert.deepEqual([finder.summary(view), finder.rows], ["", null]);
});

test("the share in calls holds what was called, by module only self time, and both are said", () => {
  const views = new Views(traceOf([{ op: "linear", total: 10, module: "net" }, { op: "mm", total: 6, parent: 0, module: "net" }, { op: "add", total: 10 }]), null);
  const finder = new Finder();
  const found = (/** @type {object} */ change) => {
    const view = views.view({ ...CALLS, ...change });
    finder.run("linear", view);
    return [finder.summary(view), finder.meaning(view)];
  };
  const [calls, heavy, grouped] = [found({}), found({ order: "heavy" }), found({ group: "module" })];
  assert.deepEqual([calls[0], heavy[0], grouped[0]], ["1 match · 50.0 % of the time", "1 match · 50.0 % of the time", "1 match · 20.0 % of self time"]);
  assert.match(calls[1], /with all that they called.+A match inside another one counts once\.$/);
  assert.match(grouped[1], /^Share of the self time of the matching ops/);
  finder.run("nothing like it", views.view(CALLS));
  assert.equal(finder.meaning(views.view(CALLS)), "");
});

test("host and device are shared out separately", () => {
  const tracks = [{ name: "thread 0", kind: "host" }, { name: "stream 7", kind: "device" }];
  const view = timeline(traceOf([{ op: "mm", total: 10 }, { op: "add", total: 30 }, { op: "mm kernel", total: 9, track: 1 }, { op: "k", total: 1, track: 1 }], tracks));
  const finder = new Finder();
  finder.run("mm", view);
  assert.deepEqual(totals(view), { host: 40, device: 10 });
  assert.equal(finder.summary(view), "2 matches · 25.0 % of host time · 90.0 % of device time");
});
