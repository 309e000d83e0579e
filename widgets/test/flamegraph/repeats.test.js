import assert from "node:assert/strict";
import { test } from "node:test";
import { ADDED, REMOVED, SAME, SLOWER } from "../../src/flamegraph/data/difference.js";
import { foldedTrace } from "../../src/flamegraph/data/repeats.js";
import { ownRows } from "../../src/flamegraph/views/describe.js";
import { titleOf, Views } from "../../src/flamegraph/views/views.js";
import { pathText, repeated, single, step, totals, traceOf } from "../../test_helpers/trace.js";

const CHOICE = { order: "heavy", group: "none", clock: "host", color: "phase", isFolded: true };
const REPEATS = { "blocks.0": "*", "blocks.1": "*" };

/** The step of two blocks, which are alike. @param {Record<string, string>} [repeats] */
const alike = (repeats = REPEATS) => ({ ...step(), repeats });

test("calls of layers that are alike merge under the name that they share, with their number", () => {
  const { frames } = new Views(alike(), null).view(CHOICE);
  assert.deepEqual(totals(frames), {
    step: 100, "step>blocks.* × 2 (Block)": 60, "step>blocks.* × 2 (Block)>aten.mm": 45, "step>blocks.* × 2 (Block)>aten.relu": 5, "step>aten.mm": 25,
  });
  assert.deepEqual([ownRows(frames, 1), frames.texts[frames.name[1]]], [[1, 3], "blocks.* (Block)"]);
});

test("groupings follow the shared path", () => {
  const byModule = totals(new Views(alike(), null).view({ ...CHOICE, group: "module" }).frames);
  assert.deepEqual([byModule.blocks, byModule["blocks>* × 2"], byModule["blocks>* × 2>backward>aten.mm"]], [85, 85, 25]);
  assert.deepEqual(totals(new Views(alike(), null).view({ ...CHOICE, group: "op" }).frames)["aten.mm>forward>blocks.*"], 45);
});

test("time order and each layer by itself show no layers as one, nor a comparison with what has no such layers", () => {
  const views = new Views(alike(), null);
  assert.equal(views.view({ ...CHOICE, order: "time" }).frames.size, 7);
  assert.equal(views.view({ ...CHOICE, isFolded: false }).frames.size, 7);
  assert.equal(new Views(alike(), step(), single()).view(CHOICE).frames.size, 7);
  assert.deepEqual([views.hasRepeats, new Views(step(), null).hasRepeats, new Views(alike(), step(), single()).hasRepeats], [true, false, false]);
});

test("a comparison shows as one what is alike on both sides, and takes the noise of such frames", () => {
  const before = traceOf([
    { op: "step", total: 100, level: "range" }, { op: "Block", total: 10, parent: 0, level: "module", module: "blocks.0" },
    { op: "Block", total: 20, parent: 0, level: "module", module: "blocks.1" }, { op: "aten.tanh", total: 5, parent: 2, module: "blocks.1" },
  ]);
  const judged = repeated([{ row: 0, usual: 100, change: 0, noise: 5 }, { row: 1, usual: 30, change: 30, noise: 4 }]).views["none host"];
  const noise = { ...single(), views: { "none host folded": judged } };
  const views = new Views(alike(), { ...before, repeats: REPEATS }, noise);
  const { frames, difference } = views.view({ ...CHOICE, color: "difference" });
  const codes = Object.fromEntries(Array.from(difference?.codes ?? [], (code, frame) => [pathText(frames, frame), code]));
  assert.deepEqual(codes, {
    step: SAME, "step>blocks.* × 2 (Block)": SLOWER, "step>blocks.* × 2 (Block)>aten.mm": ADDED, "step>blocks.* × 2 (Block)>aten.relu": ADDED,
    "step>aten.mm": ADDED, "step>blocks.* × 2 (Block)>aten.tanh": REMOVED,
  });
  const each = views.view({ ...CHOICE, color: "difference", isFolded: false });
  assert.deepEqual([each.frames.size, each.difference?.verdicts], [8, null]);
});

test("layers in layers, and rows of some of them", () => {
  const paths = ["m.0.e.0", "m.0.e.1", "m.1.e.0", "m.1.e.1", "m.2", "m.10"];
  const trace = { ...traceOf(paths.map((module) => ({ op: "mm", total: 1, module }))), repeats: { "m.0": "[0-1]", "m.1": "[0-1]", "m.0.e.0": "*", "m.0.e.1": "*", "m.1.e.0": "*", "m.1.e.1": "*" } };
  const { strings, columns, repeated } = foldedTrace(trace);
  assert.deepEqual([strings.module, [...columns.module]], [["m.[0-1].e.*", "m.2", "m.10"], [0, 0, 0, 0, 1, 2]]);
  assert.deepEqual([...(repeated ?? [])], [["m.[0-1]", 2], ["m.[0-1].e.*", 2]]);
  const rows = [{ op: "Block", total: 1, level: "module", module: "m.0" }, { op: "Block", total: 1, level: "module", module: "m.1" }];
  assert.deepEqual(totals(new Views({ ...traceOf(rows), repeats: { "m.0": "[0-1]", "m.1": "[0-1]" } }, null).view(CHOICE).frames), { "m.[0-1] × 2 (Block)": 2 });
});

test("an op without a module keeps none", () => {
  assert.deepEqual([...foldedTrace({ ...traceOf([{ op: "a", total: 1 }]), repeats: REPEATS }).columns.module], [-1]);
});

test("callers and callees of a layer are those of all of its kind", () => {
  const views = new Views(alike(), null);
  const op = views.opOf(views.view({ ...CHOICE, order: "time" }), 3, CHOICE);
  assert.equal(op, "blocks.* (Block)");
  assert.equal(totals(views.view({ ...CHOICE, group: "sandwich", op }).frames)["blocks.* × 2 (Block)"], 60);
});

test("the title says that layers are shown as one, where there are any", () => {
  assert.equal(titleOf(CHOICE, true), "left heavy, merged calls, repeated layers as one");
  assert.deepEqual([titleOf(CHOICE, false), titleOf({ ...CHOICE, order: "time" }, true)], ["left heavy, merged calls", "time order"]);
});
