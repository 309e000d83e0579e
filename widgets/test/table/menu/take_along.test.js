import assert from "node:assert/strict";
import { test } from "node:test";
import { allRows, written } from "../../../src/table/menu/take_along.js";

test("all pages of a listing are fetched, without number and depth, and their progress is told", async () => {
  const rows = [[0, 0, "aten.mm", 1.5], [1, 1, "aten.add", null], [2, 0, "aten.mul", 2]];
  /** @type {[number, number][]} */
  const told = [];
  const page = async (/** @type {number} */ offset) => ({ listed: 3, columns: ["op", "self_time_us"], rows: rows.slice(offset, offset + 2) });
  const table = await allRows(page, (done, all) => told.push([done, all]));
  assert.deepEqual(table, { names: ["op", "self_time_us"], rows: [["aten.mm", 1.5], ["aten.add", null], ["aten.mul", 2]] });
  assert.deepEqual(told, [[2, 3], [3, 3]]);
});

test("a fetch that is not answered gives nothing", async () => {
  assert.equal(await allRows(async () => null, () => {}), null);
});

test("cells with a separator, a quote or a line break are quoted; missing ones are empty", () => {
  const table = { names: ["op", "shape"], rows: [['a"b', "[2, 3]"], [null, "x\ny"], ["a\tb", 0]] };
  assert.equal(written(table, ","), 'op,shape\n"a""b","[2, 3]"\n,"x\ny"\na\tb,0\n');
  assert.equal(written(table, "\t").split("\n")[1], '"a""b"\t[2, 3]');
});
