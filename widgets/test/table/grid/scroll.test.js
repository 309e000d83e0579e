import assert from "node:assert/strict";
import { test } from "node:test";
import { clampTop, MAX_HEIGHT, scale, scrollHeight, topToShow, visibleRows } from "../../../src/table/grid/scroll.js";

const small = { rowCount: 100, rowHeight: 24, viewHeight: 240 };
const huge = { rowCount: 1_000_000, rowHeight: 24, viewHeight: 240 };

test("a short list scrolls pixel by pixel", () => {
  assert.equal(scrollHeight(small), 2400);
  assert.equal(scale(small), 1);
});

test("a list beyond what browsers draw is scaled so that its end is reached", () => {
  assert.equal(scrollHeight(huge), MAX_HEIGHT);
  const end = (MAX_HEIGHT - huge.viewHeight) * scale(huge);
  assert.ok(Math.abs(end - (24_000_000 - 240)) < 1e-6);
});

test("visible rows are those any part of which is in view", () => {
  assert.deepEqual(visibleRows(0, small), { first: 0, last: 9 });
  assert.deepEqual(visibleRows(25, small), { first: 1, last: 11 });
  assert.deepEqual(visibleRows(2160, small), { first: 90, last: 99 });
});

test("an empty list has no visible rows", () => {
  assert.deepEqual(visibleRows(0, { ...small, rowCount: 0 }), { first: 0, last: -1 });
});

test("positions are kept in range", () => {
  assert.equal(clampTop(-5, small), 0);
  assert.equal(clampTop(99999, small), 2160);
  assert.equal(clampTop(10, { ...small, rowCount: 2 }), 0);
});

test("a row is shown by the smallest move", () => {
  assert.equal(topToShow(5, 0, small), 0);
  assert.equal(topToShow(10, 0, small), 24);
  assert.equal(topToShow(2, 480, small), 48);
});
