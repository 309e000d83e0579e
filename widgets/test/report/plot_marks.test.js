import assert from "node:assert/strict";
import { test } from "node:test";
import { plotMarks, ticks } from "../../src/report/plot_marks.js";

const AXIS = { title: { text: "axis" }, gridcolor: "#ccc" };
const LAYOUT = { xaxis: AXIS, yaxis: AXIS, font: { color: "#000", size: 11, family: "sans" } };

/** @param {any[]} data @param {object} [layout] */
function marks(data, layout = {}) {
  return plotMarks(data, { ...LAYOUT, ...layout }, 168, 148).filter(({ tag, title, attributes }) => title || attributes.stroke === "red" || tag === "circle");
}

test("ticks are round numbers inside the ends", () => {
  assert.deepEqual([ticks(0, 10), ticks(-0.3, 1.1), ticks(990, 1010)], [[0, 2, 4, 6, 8, 10], [0, 0.5, 1], [990, 995, 1000, 1005, 1010]]);
});

test("bars stand on the ground, as high as their counts", () => {
  const bars = { type: "bar", x: [1, 2], y: [5, 10], customdata: ["1 to 2", "2 to 3"], marker: { color: "blue" } };
  const [low, high] = marks([bars], { xaxis: { ...AXIS, tickvals: [1], ticktext: ["1e1"] } });
  assert.deepEqual([low.attributes.height, high.attributes.height, high.attributes.y], [50, 100, 8]);
  assert.equal(low.title, "1 to 2: 5 elements");
});

test("points that are not known are left out, and the line goes from end to end", () => {
  const points = { type: "scatter", mode: "markers", x: [0, 1, null], y: [0, 1, 3], marker: { color: "blue", opacity: 0.6 } };
  const line = { type: "scatter", mode: "lines", x: [0, 1], y: [0, 1], line: { color: "red", width: 1 } };
  const found = marks([line, points]);
  assert.deepEqual(found.map(({ tag }) => tag), ["line", "circle", "circle"]);
  assert.deepEqual([found[0].attributes.x1, found[1].attributes.cx], [found[1].attributes.cx, found[0].attributes.x1]);
});

test("a heat map starts at the top, and the largest error is opaque", () => {
  const map = { type: "heatmap", z: [[0, 2], [1, 4]], dx: 3, dy: 1, zmax: 4, colorscale: [[0, "pale"], [1, "red"]] };
  const found = marks([map], { yaxis: { ...AXIS, autorange: "reversed" } });
  assert.deepEqual(found.map(({ attributes }) => [attributes.x, attributes.y, attributes["fill-opacity"]]), [
    [58, 8, "0.06"], [108, 8, "0.5"], [58, 58, "0.28"], [108, 58, "1"],
  ]);
  assert.equal(found[3].title, "row 1, column 3: 4");
});

test("a figure of nothing has its axes", () => {
  const bars = { type: "bar", x: [], y: [], customdata: [], marker: { color: "blue" } };
  assert.ok(plotMarks([bars], LAYOUT, 168, 148).some(({ text }) => text === "axis"));
});
