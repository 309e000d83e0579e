import assert from "node:assert/strict";
import { test } from "node:test";
import { STRONG } from "../../src/graph/canvas/painter.js";
import { waysOf } from "../../src/graph/model/colors.js";
import { legendOf } from "../../src/graph/model/legend.js";
import { GraphModel } from "../../src/graph/model/model.js";
import { onOneSide } from "../../src/graph/model/scale.js";
import { graphOf } from "../../test_helpers/graph.js";

const LETTER = { title: 7, subtitle: 6 };
const PARTS = [{ name: "a" }, { name: "b", parent_id: 0 }, { name: "c", parent_id: 0 }, { name: "d", parent_id: 0 }];

/** @param {any[]} own of each part @param {any} value @param {any[]} [nodes] */
function overlaid(own, value, nodes = [{ part_id: 1 }, { part_id: 2 }, { part_id: 3 }]) {
  const known = { name: "overlay", label: "x", format: "number", how: "sum", isInclusive: false, isScaled: true, center: null, ...value };
  const parts = PARTS.map((part, at) => ({ ...part, ...own[at] }));
  const data = graphOf({ nodes, parts, values: [known], overlay: { label: "x", caption: "x: sum of all in a box", isInclusive: known.isInclusive } });
  return new GraphModel(data, "g", false, LETTER);
}

/** @param {GraphModel} model */
const amounts = (model) => [...model.tree.ofPart].map((item) => model.amounts.overlay[item]);
/** @param {GraphModel} model */
const labels = (model) => [...model.tree.ofPart].map((item) => model.colors("overlay").categories[model.colors("overlay").codes[item]]?.label);

test("a box has the sum, the largest, the smallest or the mean of its own rows and those of all in it", () => {
  const own = [{ overlay: 1, overlay_rows: 1 }, { overlay: 10, overlay_rows: 3 }, { overlay: 3, overlay_rows: 1 }, {}];
  assert.deepEqual(amounts(overlaid(own, { how: "sum" })), [14, 10, 3, NaN]);
  assert.deepEqual(amounts(overlaid(own, { how: "max" })), [10, 10, 3, NaN]);
  assert.deepEqual(amounts(overlaid(own, { how: "min" })), [1, 10, 3, NaN]);
  assert.deepEqual(amounts(overlaid(own, { how: "mean" })), [(1 + 30 + 3) / 5, 10, 3, NaN]);
});

test("a number that counts what is below already is not summed again, and a box without one has what is in it", () => {
  assert.deepEqual(amounts(overlaid([{ overlay: 13 }, { overlay: 10 }, { overlay: 3 }, {}], { isInclusive: true })), [13, 10, 3, NaN]);
  assert.deepEqual(amounts(overlaid([{}, { overlay: 10 }, { overlay: 3 }, {}], { isInclusive: true })), [13, 10, 3, NaN]);
});

test("ops are colored, and parts by the ops in them", () => {
  const model = overlaid([], { format: "duration" }, [{ part_id: 1, overlay: 2 }, { part_id: 1, overlay: 3 }, { part_id: 2 }, { part_id: 3, overlay: 50 }]);
  assert.deepEqual(amounts(model), [55, 5, NaN, 50]);
  assert.deepEqual(model.details(model.tree.ofPart[1]).fields[0], ["x", "5.00 µs"]);
  assert.equal(model.noteOf(model.tree.ofPart[1], "overlay"), "5.00 µs");
  assert.equal(model.noteOf(model.tree.ofPart[2], "overlay"), "");
});

test("the steps of a scale have units, all of them are in the legend, and a box that is not in the frame is plain", () => {
  const model = overlaid([{}, { overlay: 10 }, { overlay: 100 }, {}], { format: "data_size" });
  assert.deepEqual(labels(model), ["from 90 B", "below 30 B", "from 90 B", undefined]);
  const { caption, entries, others } = legendOf(model.colors("overlay"));
  assert.deepEqual(entries.map(({ category }) => category.label), ["below 30 B", "30 B to 50 B", "50 B to 70 B", "70 B to 90 B", "from 90 B"]);
  assert.deepEqual([caption, others], ["x: sum of all in a box", ["plain: not in the frame"]]);
  const strengths = entries.map(({ category }) => category.strength ?? 0);
  assert.deepEqual(strengths, [...strengths].sort());
});

test("the numbers of both sides of a comparison make one scale", () => {
  const model = overlaid([{}, { overlay: 10 }, { overlay: 100 }, {}], {});
  model.data.numbersOf = () => [10, 100, 460];
  assert.deepEqual(labels(model), ["100 to 190", "below 100", "100 to 190", undefined]);
});

test("a wide scale has steps of one factor, and edges are numbers of two digits", () => {
  assert.deepEqual(onOneSide([1, 100_000], 1, 100_000), [63, 400, 2500, 16_000]);
  assert.deepEqual(onOneSide([0, 5], 0, 5), [1, 2, 3, 4]);
  assert.deepEqual(onOneSide([7], 7, 7), []);
  assert.deepEqual(labels(overlaid([{}, { overlay: 7 }, {}, {}], {})), ["7", "7", undefined, undefined]);
});

test("numbers below and above zero, and ratios below and above one, have different hues around a gray", () => {
  const hues = (/** @type {GraphModel} */ model) => {
    const { categories, codes } = model.colors("overlay");
    return [...model.tree.ofPart].slice(1).map((item) => categories[codes[item]].color);
  };
  const [blue, gray, amber] = ["#3b8cf6", "#868686", "#d97706"];
  assert.deepEqual(hues(overlaid([{}, { overlay: -10 }, { overlay: 0.5 }, { overlay: 9 }], {})), [blue, gray, amber]);
  assert.deepEqual(hues(overlaid([{}, { overlay: 0.5 }, { overlay: 1.02 }, { overlay: 2 }], { how: "max", center: 1, format: "ratio" })), [blue, gray, amber]);
});

test("an infinite number is the last step, and does not stretch the scale", () => {
  const model = overlaid([{}, { overlay: 1 }, { overlay: 5 }, { overlay: Infinity }], { how: "max" });
  assert.deepEqual(labels(model).slice(1), ["below 1.8", "from 4.2", "from 4.2"]);
});

/** @param {(string | null)[]} own of each part @param {boolean} isInclusive */
function named(own, isInclusive) {
  const data = graphOf({ nodes: [{ part_id: 1 }, { part_id: 2 }, { part_id: 3 }], parts: PARTS.map((part, at) => ({ ...part, overlay: own[at] })), overlay: { label: "status", caption: "status", isInclusive } });
  return new GraphModel(data, "g", false, LETTER);
}

test("a text of a module itself is that of its box; of several rows a box has what all in it share", () => {
  assert.deepEqual(labels(named(["ok", "ok", "bad", null], true)), ["ok", "ok", "bad", undefined]);
  assert.deepEqual(labels(named(["ok", "ok", "bad", null], false)), ["several", "ok", "bad", undefined]);
  assert.deepEqual(labels(named([null, "ok", "several", null], true)), ["several", "ok", "several", undefined]);
  const model = named([null, "ok", "ok", null], true);
  assert.deepEqual([labels(model)[0], model.details(model.tree.ofPart[0]).fields[0], model.noteOf(model.tree.ofPart[3], "overlay")], ["ok", ["status", "ok"], ""]);
  assert.deepEqual(waysOf(model.data)[0], ["overlay", "status"]);
});

test("many texts share the color of the others", () => {
  const parts = Array.from({ length: 20 }, (_, at) => ({ name: `p${at}`, overlay: `kind ${at}` }));
  const data = graphOf({ nodes: parts.map((_, part_id) => ({ part_id })), parts, overlay: { label: "k", caption: "k", isInclusive: true } });
  const model = new GraphModel(data, "g", false, LETTER);
  const { categories, codes } = model.colors("overlay");
  assert.deepEqual(categories.slice(-2).map(({ label }) => label), ["9 others", "several"]);
  assert.equal([...model.tree.ofPart].filter((item) => categories[codes[item]].label === "9 others").length, 9);
  assert.equal(new Set(categories.slice(0, 11).map(({ color, pattern }) => color + pattern)).size, 11);
});

/** Red, green and blue of a color, or of a mix of two. @param {string} color */
const parts = (color) => [1, 3, 5].map((at) => Number.parseInt(color.slice(at, at + 2), 16));
/** @param {number[]} over @param {number[]} under @param {number} part */
const mixed = (over, under, part) => over.map((value, at) => part * value + (1 - part) * under[at]);

/** Contrast of two colors by WCAG 2.2. @param {number[]} left @param {number[]} right */
function contrast(left, right) {
  const [dark, light] = [left, right].map((color) => {
    const [red, green, blue] = color.map((value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  }).sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

test("both lines of a box bear 4.5:1 on every step of a scale, in light and dark", () => {
  const ways = [overlaid([{}, { overlay: 10 }, { overlay: 100 }, {}], {}), overlaid([{}, { overlay: -10 }, { overlay: 100 }, {}], {})];
  for (const [page, text] of [["#ffffff", "#1f2328"], ["#161616", "#e6e6e6"], ["#111111", "#ffffff"]].map((pair) => pair.map(parts))) {
    for (const { color, strength = 0 } of ways.flatMap((model) => model.colors("overlay").categories.slice(0, 5))) {
      const fill = mixed(parts(color), page, strength);
      const second = strength > STRONG ? text : mixed(text, page, 0.74);
      assert.ok(contrast(fill, text) >= 4.5 && contrast(fill, second) >= 4.5, `${color} ${strength} ${contrast(fill, second)}`);
    }
  }
});

test("categories whose colors say something have those, in that order", () => {
  const nodes = [{ part_id: 1, overlay: "agrees" }, { part_id: 1, overlay: "agrees" }, { part_id: 2, overlay: "diverges" }];
  /** @type {Record<string, [any, string]>} */
  const looks = { diverges: ["magenta", "slash"], unknown: ["brown", ""], agrees: ["gray", ""] };
  const [parts, overlay] = [PARTS.map((part) => ({ ...part, overlay: null })), { label: "x", caption: "x", isInclusive: true }];
  const categoriesOf = (/** @type {object} */ more) => new GraphModel(graphOf({ nodes, parts, overlay: { ...overlay, ...more } }), "g", false, LETTER).colors("overlay").categories.map(({ label, pattern }) => [label, pattern]);
  assert.deepEqual(categoriesOf({ looks }).slice(0, 2), [["diverges", "slash"], ["agrees", ""]]);
  assert.equal(categoriesOf({})[0][0], "agrees");
});
