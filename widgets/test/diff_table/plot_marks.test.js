import assert from "node:assert/strict";
import { test } from "node:test";
import { extents, nearest, plotMarks, ticks, valueAt } from "../../src/diff_table/plot_marks.js";

const NAMES = { title: "t", description: "d", x_title: "across", y_title: "up" };
const HISTOGRAM = { ...NAMES, kind: /** @type {const} */ ("histogram"), edges: [0, 1, 2], counts: [5, 10] };
const SCATTER = { ...NAMES, kind: /** @type {const} */ ("scatter"), expected: [0, 1, null], actual: [0, 1, 3] };
const HEAT_MAP = { ...NAMES, kind: /** @type {const} */ ("heat_map"), cells: [[0, 2], [1, 4]], cell: [1, 3], largest: 4 };

/** @param {import("../../src/diff_table/plot_marks.js").Plot} plot @param {any} [range] */
const drawn = (plot, range) => plotMarks(plot, 168, 148, range);

test("ticks are round numbers inside the ends", () => {
  assert.deepEqual([ticks(0, 10), ticks(-0.3, 1.1), ticks(990, 1010)], [[0, 2, 4, 6, 8, 10], [0, 0.5, 1], [990, 995, 1000, 1005, 1010]]);
});

test("bars stand on the ground, as high as their counts, between powers of ten", () => {
  const { items, axes } = drawn(HISTOGRAM);
  const [low, high] = items.map(({ mark }) => mark.attributes);
  assert.deepEqual([low.height, high.height, high.y], [50, 100, 8]);
  assert.deepEqual(items.map(({ label }) => label), ["1 to 10: 5 elements", "10 to 1e+02: 10 elements"]);
  assert.ok(axes.some(({ text }) => text === "1e1"));
});

test("points that are not known are left out, and equal values lie on the line", () => {
  const { items, lines } = drawn(SCATTER);
  assert.deepEqual(items.map(({ label }) => label), ["expected 0, actual 0", "expected 1, actual 1"]);
  const [{ attributes }] = lines;
  const share = (Number(items[0].mark.attributes.cx) - Number(attributes.x1)) / (Number(attributes.x2) - Number(attributes.x1));
  assert.equal(share.toFixed(3), (0.04 / 1.08).toFixed(3));
});

test("a heat map starts at the top, the largest error is opaque, and NaN or Inf is said", () => {
  const { items, perRow } = drawn(HEAT_MAP);
  assert.deepEqual(items.map(({ mark: { attributes } }) => [attributes.x, attributes.y, attributes["fill-opacity"]]), [
    [58, 8, "0.06"], [108, 8, "0.5"], [58, 58, "0.28"], [108, 58, "1"],
  ]);
  assert.deepEqual([items[3].label, perRow], ["row 1, column 3: 4", 2]);
  const [unknown] = drawn({ ...HEAT_MAP, cells: [[null]] }).items;
  assert.deepEqual([unknown.label, unknown.mark.attributes["fill-opacity"]], ["row 0, column 0: NaN or Inf on one side", "1"]);
});

test("plots of nothing and of one value have their axes", () => {
  const nothing = [{ ...HISTOGRAM, edges: [], counts: [] }, { ...SCATTER, expected: [null], actual: [1] }, { ...HEAT_MAP, cells: [[]] }, { ...SCATTER, expected: [2], actual: [2] }];
  for (const plot of nothing) {
    const { axes } = drawn(plot);
    assert.ok(axes.some(({ text }) => text === "across"));
    assert.ok(axes.every(({ attributes }) => Object.values(attributes).every((value) => value !== "NaN" && !Number.isNaN(value))), plot.kind);
  }
});

test("what is zoomed to fills the area, and the rest is gone", () => {
  const { items, perRow } = drawn(HEAT_MAP, { x: [3, 6], y: [1, 2] });
  assert.deepEqual([items.map(({ label }) => label), perRow], [["row 1, column 3: 4"], 1]);
  assert.deepEqual([items[0].hit.width, items[0].hit.height], [100, 100]);
  assert.deepEqual(extents(HEAT_MAP), { x: [0, 6], y: [0, 2] });
});

test("a pointer finds the item below or next to it", () => {
  const { items, across } = drawn(HISTOGRAM);
  assert.equal(nearest(items, 70, 10)?.label, "1 to 10: 5 elements");
  assert.equal(nearest(items, 155, 20)?.label, "10 to 1e+02: 10 elements");
  assert.equal(nearest(items, 20, 20), null);
  assert.equal(valueAt(108, across), 1);
});
