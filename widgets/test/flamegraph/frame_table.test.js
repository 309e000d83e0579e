import assert from "node:assert/strict";
import { test } from "node:test";
import { timelineFrames } from "../../src/flamegraph/data/frames.js";
import { linksOf } from "../../src/flamegraph/data/links.js";
import { lines, sorted } from "../../src/flamegraph/frame_table/lines.js";
import { across, tableOf, tableViewOf } from "../../src/flamegraph/frame_table/content.js";
import { Views } from "../../src/flamegraph/views/views.js";
import { single, step, traceOf } from "../../test_helpers/trace.js";

const EVERYTHING = { top: -1, isMatch: null, difference: null };
const CALLS = { order: "time", group: "none", clock: "host", color: "phase" };

/** @param {any} trace @param {object} [filter] */
function table(trace, filter = {}) {
  const frames = timelineFrames(trace);
  const list = lines(frames, linksOf(frames), { ...EVERYTHING, ...filter });
  return sorted(list, frames.texts, { column: "self", isDescending: true }).map(({ name, count, self, total }) => [frames.texts[name], count, self, total]);
}

test("frames add up by name; total leaves out what is inside its own name", () => {
  const trace = traceOf([{ op: "f", total: 10 }, { op: "f", total: 6, parent: 0 }, { op: "g", total: 1, parent: 1 }, { op: "f", total: 2 }]);
  assert.deepEqual(table(trace), [["f", 3, 11, 12], ["g", 1, 1, 1]]);
});

test("zoom and search leave out the rest", () => {
  assert.deepEqual(table(step(), { top: 3 }), [["aten.mm", 1, 30, 30], ["aten.relu", 1, 5, 5], ["blocks.1 (Block)", 1, 5, 40]]);
  assert.deepEqual(table(step(), { isMatch: Uint8Array.of(0, 0, 0, 0, 0, 1, 0) }), [["aten.relu", 1, 5, 5]]);
});

test("a thousand levels are no problem", () => {
  const rows = Array.from({ length: 5000 }, (_, index) => ({ op: `op ${index % 2}`, total: 5000 - index, parent: index - 1 }));
  assert.deepEqual(table(traceOf(rows)), [["op 0", 2500, 2500, 5000], ["op 1", 2500, 2500, 4999]]);
});

test("lines sort by name and by number, equal ones by name", () => {
  const frames = timelineFrames(step());
  const list = lines(frames, linksOf(frames), EVERYTHING);
  const names = (/** @type {any} */ sort) => sorted(list, frames.texts, sort).map(({ name }) => frames.texts[name]);
  assert.deepEqual(names({ column: "name", isDescending: false }), ["aten.mm", "aten.relu", "blocks.0 (Block)", "blocks.1 (Block)", "step"]);
  assert.deepEqual(names({ column: "self", isDescending: false }), ["aten.relu", "blocks.0 (Block)", "blocks.1 (Block)", "step", "aten.mm"]);
});

test("with a base the table adds up the merged difference", () => {
  const views = new Views(step(), step(), single());
  const view = views.view(CALLS);
  const tableView = tableViewOf(views, view, CALLS);
  assert.equal(across(view, 4, tableView), tableView.frames.of[4]);
  const { about, difference, lines: shown } = tableOf(tableView, across(view, 3, tableView), "mm");
  assert.deepEqual([about, difference === tableView.difference, shown.length], ["inside blocks.1 (Block), matching mm", true, 1]);
});
