import assert from "node:assert/strict";
import { test } from "node:test";
import { rangeSums } from "../../src/flamegraph/data/range_sums.js";
import { step, traceOf } from "../../test_helpers/trace.js";

const TRACKS = [{ name: "thread 0", kind: "host" }, { name: "stream 7", kind: "device" }];

/** @param {any} trace @param {number} from @param {number} to */
function sums(trace, from, to) {
  const { byOp, byModule, rows, ...rest } = rangeSums(trace, { from, to });
  const table = (/** @type {any[]} */ lines) => lines.map(({ name, count, self, deviceCount, deviceSelf }) => [name, count, self, ...(deviceCount ? [deviceCount, deviceSelf] : [])]);
  return { byOp: table(byOp), byModule: table(byModule), rows: [...rows], ...rest };
}

test("the whole range has the self times of the trace", () => {
  assert.deepEqual(sums(step(), 0, 100), {
    byOp: [["aten.mm", 3, 70], ["step", 1, 15], ["Block", 2, 10], ["aten.relu", 1, 5]],
    byModule: [["blocks.0", 3, 45], ["blocks.1", 3, 40], ["outside modules", 1, 15]],
    rows: [0, 1, 2, 3, 4, 5, 6], count: 7, cut: 0, self: 100, deviceSelf: 0,
  });
});

test("calls that an edge cuts count with the part of their self time inside", () => {
  // From the middle of the first mm (0 to 15) to the middle of the second (20 to 50).
  assert.deepEqual(sums(step(), 10, 35), {
    byOp: [["aten.mm", 2, 20], ["Block", 2, 5], ["step", 1, 0]], byModule: [["blocks.1", 2, 15], ["blocks.0", 2, 10], ["outside modules", 1, 0]],
    rows: [0, 1, 2, 3, 4], count: 5, cut: 5, self: 25, deviceSelf: 0,
  });
});

test("a range inside one call has that call and those around it, all of its time in the innermost", () => {
  assert.deepEqual(sums(step(), 25, 30).byOp, [["aten.mm", 1, 5], ["Block", 1, 0], ["step", 1, 0]]);
});

test("a call without duration lies where it starts, and an edge belongs to the range after it", () => {
  const trace = traceOf([{ op: "a", total: 10 }, { op: "mark", total: 0, start: 10 }, { op: "b", total: 5, start: 10 }]);
  const [before, after] = [sums(trace, 0, 10), sums(trace, 10, 12)];
  assert.deepEqual([before.byOp, after.byOp], [[["a", 1, 10]], [["b", 1, 2], ["mark", 1, 0]]]);
  assert.deepEqual([before.rows, after.rows], [[0], [1, 2]]);
});

test("time of devices stands beside that of the host", () => {
  const trace = traceOf([
    { op: "mm", total: 10, module: "fc" }, { op: "mm", total: 4, parent: 0, module: "fc" }, { op: "sgemm", total: 20, start: 5, track: 1, module: "fc" },
  ], TRACKS);
  const { byOp, byModule, self, deviceSelf, count, cut } = sums(trace, 2, 15);
  assert.deepEqual([byOp, byModule], [[["sgemm", 0, 0, 1, 10], ["mm", 2, 8]], [["fc", 2, 8, 1, 10]]]);
  assert.deepEqual([self, deviceSelf, count, cut], [8, 10, 3, 3]);
});

test("ranges side by side add up to the range over both, wherever they meet", () => {
  let seed = 5;
  const random = () => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) / 2 ** 32;
  /** @type {import("../../test_helpers/trace.js").Row[]} */
  const rows = [];
  const grow = (/** @type {number} */ parent, /** @type {number} */ start, /** @type {number} */ total, /** @type {number} */ depth) => {
    const me = rows.push({ op: `op ${Math.floor(random() * 5)}`, module: `m${depth}`, parent, start, total }) - 1;
    let at = start;
    for (let child = 0; child < 3 && depth < 4; child += 1) {
      const width = random() * (start + total - at) * 0.6;
      grow(me, at, width, depth + 1);
      at += width * (1 + 0.3 * random());
    }
  };
  grow(-1, 0, 1000, 0);
  const trace = traceOf(rows);
  const selfOf = (/** @type {number} */ from, /** @type {number} */ to) => rangeSums(trace, { from, to }).self;
  for (let turn = 0; turn < 50; turn += 1) {
    const [from, middle, to] = [random() * 1000, random() * 1000, random() * 1000].sort((a, b) => a - b);
    const parts = selfOf(from, middle) + selfOf(middle, to);
    // One thread that is never idle: what is inside a range is the range.
    assert.ok(Math.abs(parts - selfOf(from, to)) < 1e-6 && Math.abs(parts - (to - from)) < 1e-6, `${from} ${middle} ${to}`);
  }
});
