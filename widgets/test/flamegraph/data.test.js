import assert from "node:assert/strict";
import { test } from "node:test";
import { decode, hasDeviceTime, typed } from "../../src/flamegraph/data/data.js";
import { PairMap } from "../../src/flamegraph/data/pair_map.js";
import { traceOf } from "../../test_helpers/trace.js";

test("bytes become arrays of their type, aligned or not", () => {
  const bytes = new Uint8Array(Float64Array.of(0, 1.5, -2).buffer);
  const shifted = new Uint8Array(28);
  shifted.set(bytes, 4);
  assert.deepEqual([...typed(bytes.buffer, Float64Array)], [0, 1.5, -2]);
  assert.deepEqual([...typed(new DataView(bytes.buffer, 8), Float64Array)], [1.5, -2]);
  assert.deepEqual([...typed(new DataView(shifted.buffer, 4, 24), Float64Array)], [0, 1.5, -2]);
  assert.equal(typed(undefined, Int32Array).length, 0);
});

test("what is absent has a default", () => {
  const columns = { parent: Int32Array.of(-1).buffer };
  const trace = decode({ count: 1, strings: {}, tracks: [], columns });
  assert.deepEqual([trace?.complete, trace?.memory, trace?.notes, trace?.title], [true, [], [], ""]);
  assert.equal(decode(null), null);
});

test("device time is known from a track or from a row", () => {
  assert.equal(hasDeviceTime(traceOf([{ op: "a", total: 1 }])), false);
  assert.equal(hasDeviceTime(traceOf([{ op: "a", total: 1, device_self: 2 }])), true);
  assert.equal(hasDeviceTime(traceOf([{ op: "a", total: 1 }], [{ name: "s", kind: "device" }])), true);
});

test("a pair map keeps what it was given while it grows", () => {
  const map = new PairMap(4);
  for (let index = 0; index < 5000; index += 1) map.set(index % 70, index, index);
  assert.deepEqual([map.get(30, 100), map.get(31, 100), map.get(-1, 0), map.size], [100, -1, -1, 5000]);
  map.set(30, 100, 7);
  assert.deepEqual([map.get(30, 100), map.size], [7, 5000]);
});
