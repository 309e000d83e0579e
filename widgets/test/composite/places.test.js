// Which part a link in a statement leads to.

import assert from "node:assert/strict";
import test from "node:test";
import { targetOf } from "../../src/composite/places.js";

const parts = (...names) => names.map((name) => ({ name, element: null }));

test("an op is selected in the table of ops, without one in the flame graph", () => {
  assert.equal(targetOf("op_table", parts("flamegraph", "op_table")).trait, "op_table_selected_op_id");
  assert.equal(targetOf("op_table", parts("flamegraph")).trait, "flamegraph_selected_op_id");
});

test("a row of an alignment is one of the table of differences, which shows it", () => {
  const target = targetOf("alignment_table", parts("diff_table", "graph"));
  assert.deepEqual([target.trait, target.part.name], ["diff_table_selected_row", "diff_table"]);
});

test("what no part shows, or nobody knows, leads nowhere", () => {
  assert.equal(targetOf("diff_table", parts("op_table")), null);
  assert.equal(targetOf("constructor_of", parts("op_table")), null);
});
