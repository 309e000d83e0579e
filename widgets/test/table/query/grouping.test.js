import assert from "node:assert/strict";
import { test } from "node:test";
import { groupedBy, groupOf, toggled } from "../../../src/table/query/grouping.js";

/** @type {Record<string, import("../../../src/table/query/grouping.js").Way>} */
const WAYS = { op: { label: "op", sort: [{ column: "self_time_us", descending: true }], group: { by: ["op"], totals: { self_time_us: "sum" } } } };

test("grouping closes all groups and sorts as its way says; without groups the natural order is back", () => {
  assert.deepEqual(groupedBy(WAYS, "op", "op_id"), { group: "op", open: [], sort: WAYS.op.sort });
  assert.deepEqual(groupedBy(WAYS, "", "op_id"), { group: "", open: [], sort: [{ column: "op_id", descending: false }] });
});

test("a query has how to group and which groups are open; none without a way", () => {
  assert.deepEqual(groupOf(WAYS, { group: "op", open: [3] }), { ...WAYS.op.group, open: [3] });
  assert.equal(groupOf(WAYS, { group: "", open: [3] }), null);
});

test("a group opens, and closes again", () => {
  assert.deepEqual(toggled([1], 2), [1, 2]);
  assert.deepEqual(toggled([1, 2], 1), [2]);
});
