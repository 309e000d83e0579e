import assert from "node:assert/strict";
import { test } from "node:test";
import { createRowCache, PAGE_ROWS } from "../../../src/table/grid/row_cache.js";

const page = (/** @type {number} */ offset, count = PAGE_ROWS) => Array.from({ length: count }, (_, index) => [offset + index]);

test("rows are found at their place", () => {
  const cache = createRowCache();
  cache.add(200, page(200));
  assert.deepEqual(cache.get(250), [250]);
  assert.equal(cache.get(300), undefined);
});

test("nothing is missing where all rows in view are there", () => {
  const cache = createRowCache();
  cache.add(0, page(0));
  assert.equal(cache.missing(10, 40, 1000), null);
});

test("scrolling down asks for what follows, scrolling up for what is before", () => {
  const cache = createRowCache();
  cache.add(500, page(500));
  assert.deepEqual(cache.missing(590, 620, 1000), { offset: 600, limit: 100 });
  assert.deepEqual(cache.missing(480, 510, 1000), { offset: 400, limit: 100 });
});

test("a jump asks for a page around the view", () => {
  const cache = createRowCache();
  assert.deepEqual(cache.missing(500, 519, 1000), { offset: 460, limit: 100 });
});

test("the page stays within the rows", () => {
  const cache = createRowCache();
  assert.deepEqual(cache.missing(0, 19, 30), { offset: 0, limit: 30 });
  assert.deepEqual(cache.missing(985, 999, 1000), { offset: 943, limit: 57 });
});

test("old rows far away are let go", () => {
  const cache = createRowCache();
  for (let offset = 0; offset <= 30_000; offset += PAGE_ROWS) cache.add(offset, page(offset));
  assert.equal(cache.get(0), undefined);
  assert.deepEqual(cache.get(30_050), [30_050]);
});
