import assert from "node:assert/strict";
import { test } from "node:test";
import { diffColumnsOf, nextSort } from "../../src/table/columns.js";
import { everything, isFiltered, withValue } from "../../src/diff_table/query.js";

test("nothing is left out at first; a choice, a threshold or a module leaves out", () => {
  assert.equal(isFiltered(everything()), false);
  assert.equal(isFiltered({ ...everything(), choices: { status: "mismatch" } }), true);
  assert.equal(isFiltered({ ...everything(), thresholds: { noise_ratio: 2 } }), true);
  assert.equal(isFiltered({ ...everything(), module: "" }), true);
  assert.equal(isFiltered({ ...everything(), search: " " }), false);
});

test("a value is set, replaced and taken away, and the record that was is as it was", () => {
  const record = { a: 1 };
  assert.deepEqual(withValue(record, "b", 2), { a: 1, b: 2 });
  assert.deepEqual(withValue(record, "a", 3), { a: 3 });
  assert.deepEqual(withValue(record, "a", null), {});
  assert.deepEqual(withValue({ a: "x" }, "a", ""), {});
  assert.deepEqual(record, { a: 1 });
});

test("columns that are not known have a look by what they hold; places sort upwards", () => {
  const [rank, ratio, added, text] = diffColumnsOf(["rank", "noise_ratio", "some_share", "some_text"], new Set(["rank", "noise_ratio", "some_share"]));
  assert.deepEqual([added.label, added.isNumber, text.isNumber], ["some share", true, false]);
  assert.deepEqual(nextSort([{ column: "op", descending: false }], rank), [{ column: "rank", descending: false }]);
  assert.deepEqual(nextSort([{ column: "rank", descending: false }], ratio), [{ column: "noise_ratio", descending: true }]);
});
