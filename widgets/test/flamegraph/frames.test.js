import assert from "node:assert/strict";
import { test } from "node:test";
import { pathOf, rowNames, rowsInside, timelineFrames } from "../../src/flamegraph/data/frames.js";
import { groupedFrames } from "../../src/flamegraph/data/groups.js";
import { heavyLinks, childrenOf } from "../../src/flamegraph/data/links.js";
import { mergedFrames } from "../../src/flamegraph/data/merge.js";
import { pathText, step, totals, traceOf } from "../../test_helpers/trace.js";

const DEVICE = [{ name: "thread 0", kind: "host" }, { name: "cuda:0", kind: "device" }];

test("a module's frame has the end of its path, and search the whole of it", () => {
  const trace = traceOf([{ op: "Linear", total: 1, level: "module", module: "net.blocks.3" }, { op: "Linear", total: 1, level: "module", module: "" }]);
  const { name, names, texts } = rowNames(trace);
  assert.deepEqual([...name].map((index) => [names[index], texts[index]]), [["blocks.3 (Linear)", "net.blocks.3 (Linear)"], ["Linear", "Linear"]]);
});

test("rows of one path merge; totals are the sums of self times", () => {
  const rows = [{ op: "a", total: 10 }, { op: "b", total: 3, parent: 0 }, { op: "b", total: 4, parent: 0 }, { op: "a", total: 1 }];
  const frames = mergedFrames(traceOf(rows), "host");
  assert.deepEqual(totals(frames), { a: 11, "a>b": 7 });
  assert.deepEqual([[...frames.count], [...frames.row], [...frames.of], [...frames.self]], [[2, 2], [0, 1], [0, 1, 1, 0], [4, 7]]);
});

test("different modules of one class stay apart", () => {
  assert.deepEqual(totals(mergedFrames(step(), "host")), {
    step: 100, "step>blocks.0 (Block)": 20, "step>blocks.0 (Block)>aten.mm": 15, "step>blocks.1 (Block)": 40,
    "step>blocks.1 (Block)>aten.mm": 30, "step>blocks.1 (Block)>aten.relu": 5, "step>aten.mm": 25,
  });
});

test("the module grouping follows paths, then phase, then op", () => {
  const found = totals(groupedFrames(step(), "module", "host"));
  assert.equal(found.blocks, 85);
  assert.equal(found["blocks>0>forward>aten.mm"], 15);
  assert.equal(found["blocks>0>backward>aten.mm"], 25);
  assert.equal(found["outside modules>forward>step"], 15);
});

test("groupings by op and phase begin with them and keep all time", () => {
  const byOp = totals(groupedFrames(step(), "op", "host"));
  assert.deepEqual([byOp["aten.mm"], byOp["aten.mm>backward>blocks.0"], byOp.step], [70, 25, 15]);
  const byPhase = totals(groupedFrames(step(), "phase", "host"));
  assert.deepEqual([byPhase.forward, byPhase.backward, byPhase["forward>blocks>1>aten.relu"]], [75, 25, 5]);
});

test("device time is what host rows launched, else that of the device's own rows", () => {
  const host = { op: "mm", total: 5, device_self: 30 };
  const kernel = { op: "gemm", total: 30, track: 1 };
  assert.deepEqual(totals(mergedFrames(traceOf([host, kernel], DEVICE), "device")), { mm: 30 });
  assert.deepEqual(totals(mergedFrames(traceOf([host, kernel], DEVICE), "host")), { mm: 5 });
  assert.deepEqual(totals(mergedFrames(traceOf([{ op: "mm", total: 5 }, kernel], DEVICE), "device")), { gemm: 30 });
});

test("a frame knows its path and the rows inside", () => {
  const frames = timelineFrames(step());
  assert.deepEqual(pathOf(frames, 4), [0, 3, 4]);
  assert.deepEqual(pathOf(frames, -1), []);
  assert.deepEqual([...rowsInside(frames, 3)], [3, 4, 5]);
  const merged = mergedFrames(step(), "host");
  assert.deepEqual([...rowsInside(merged, 0)], [0, 1, 2, 3, 4, 5, 6]);
});

test("left heavy puts the widest child first, and equal ones in their order", () => {
  const frames = mergedFrames(traceOf([{ op: "a", total: 9 }, { op: "b", total: 2, parent: 0 }, { op: "c", total: 4, parent: 0 }, { op: "d", total: 2, parent: 0 }]), "host");
  assert.deepEqual([...childrenOf(heavyLinks(frames), 0)].map((frame) => pathText(frames, frame)), ["a>c", "a>b", "a>d"]);
  const many = traceOf([{ op: "top", total: 900 }, ...Array.from({ length: 40 }, (_, index) => ({ op: `op ${index}`, total: (index * 7) % 40, parent: 0 }))]);
  const wide = mergedFrames(many, "host");
  const widths = [...childrenOf(heavyLinks(wide), 0)].map((frame) => wide.total[frame]);
  assert.deepEqual(widths, [...widths].sort((a, b) => b - a));
});
