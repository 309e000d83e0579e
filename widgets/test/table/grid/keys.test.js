import assert from "node:assert/strict";
import { test } from "node:test";
import { moved } from "../../../src/table/grid/keys.js";

const extent = { rowCount: 100, columnCount: 5, pageRows: 10 };
const from = { row: 50, column: 2 };

/** @type {[object, object | null][]} */
const moves = [
  [{ key: "ArrowDown" }, { row: 51, column: 2 }],
  [{ key: "ArrowUp" }, { row: 49, column: 2 }],
  [{ key: "ArrowLeft" }, { row: 50, column: 1 }],
  [{ key: "ArrowRight" }, { row: 50, column: 3 }],
  [{ key: "PageDown" }, { row: 60, column: 2 }],
  [{ key: "PageUp" }, { row: 40, column: 2 }],
  [{ key: "Home" }, { row: 50, column: 0 }],
  [{ key: "End" }, { row: 50, column: 4 }],
  [{ key: "Home", ctrlKey: true }, { row: 0, column: 0 }],
  [{ key: "End", metaKey: true }, { row: 99, column: 4 }],
  [{ key: "ArrowDown", ctrlKey: true }, { row: 99, column: 2 }],
  [{ key: "ArrowUp", ctrlKey: true }, { row: 0, column: 2 }],
  [{ key: "x" }, null],
];

for (const [event, to] of moves) {
  test(`${JSON.stringify(event)} leads to ${JSON.stringify(to)}`, () => {
    assert.deepEqual(moved(/** @type {any} */ (event), from, extent), to);
  });
}

test("up from the first row leads to the header and no further", () => {
  assert.deepEqual(moved({ key: "ArrowUp" }, { row: 0, column: 1 }, extent), { row: -1, column: 1 });
  assert.deepEqual(moved({ key: "ArrowUp" }, { row: -1, column: 1 }, extent), { row: -1, column: 1 });
});

test("page keys stay within the rows", () => {
  assert.deepEqual(moved({ key: "PageUp" }, { row: 3, column: 0 }, extent), { row: 0, column: 0 });
  assert.deepEqual(moved({ key: "PageDown" }, { row: 95, column: 0 }, extent), { row: 99, column: 0 });
});

test("without rows every key stays in the header", () => {
  for (const key of ["ArrowDown", "PageDown", "PageUp"]) {
    assert.equal(moved({ key }, { row: -1, column: 0 }, { ...extent, rowCount: 0 })?.row, -1);
  }
});
