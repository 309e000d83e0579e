import assert from "node:assert/strict";
import { test } from "node:test";
import { layersOf } from "../../src/graph/layout/layers.js";
import { GraphModel } from "../../src/graph/model/model.js";
import { apart, placed } from "../../src/graph/layout/placing.js";
import { graphOf, layered } from "../../test_helpers/graph.js";

const LETTER = { title: 7, subtitle: 6 };
/** @param {number} count */
const sizes = (count) => new Array(count).fill({ width: 100, height: 20 });

test("boxes stand below what they read; sources right above what reads them; lines bend around boxes that they pass", () => {
  const layers = layersOf(5, [[0, 1], [1, 2], [0, 2], [3, 2], [2, 4]]);
  assert.deepEqual(layers.rank.slice(0, 5), [0, 1, 2, 1, 3]);
  const { x, y, paths } = placed(layers, sizes(5));
  assert.deepEqual(y, [0, 50, 100, 50, 150]);
  assert.ok(Math.abs(x[1] - x[3]) >= 118);
  assert.deepEqual(paths.map((path) => path.length), [2, 2, 4, 2, 2]);
});

test("cycles are drawn with the first box on top", () => {
  const { rank } = layersOf(3, [[0, 1], [1, 2], [2, 0]]);
  assert.deepEqual(rank.slice(0, 3), [0, 1, 2]);
});

test("a chain is a straight column", () => {
  const { x, width } = placed(layersOf(50, Array.from({ length: 49 }, (_, at) => [at, at + 1])), sizes(50));
  assert.deepEqual([new Set(x).size, width], [1, 100]);
});

test("boxes without any line stand in rows, about as wide as high", () => {
  const { width, height, x, y } = placed(layersOf(30, []), sizes(30));
  assert.ok(width < 700 && height < 400);
  assert.equal(new Set(x.map((left, box) => `${left} ${y[box]}`)).size, 30);
});

test("wanted places are met as near as widths let them", () => {
  assert.deepEqual(apart([0, 0, 100], [1, 1, 1], [10, 10, 10]), [-5, 5, 100]);
});

test("an opened part has its boxes inside of it, and none over another", () => {
  const model = new GraphModel(layered(8), "g", true, LETTER);
  const { scene, tree } = model;
  for (let item = 0; item < tree.kind.length; item += 1) scene.toggle([item], true);
  const { boxes, boxOf } = scene.drawn();
  for (const box of boxes) {
    const holder = boxOf.get(box.holder);
    if (holder) assert.ok(box.x >= holder.x && box.x + box.width <= holder.x + holder.width && box.y + box.height <= holder.y + holder.height, box.title);
  }
  const closed = boxes.filter(({ isOpen }) => !isOpen);
  const apartFrom = (/** @type {any} */ a, /** @type {any} */ b) => a === b || a.x >= b.x + b.width || b.x >= a.x + a.width || a.y >= b.y + b.height || b.y >= a.y + a.height;
  assert.ok(closed.every((a) => closed.every((b) => apartFrom(a, b))));
});

test("closing a part puts everything back to its place", () => {
  const { scene, tree } = new GraphModel(layered(8), "g", true, LETTER);
  const model = tree.children[0][1];
  scene.toggle([model], true);
  const before = JSON.stringify(scene.drawn().boxes);
  const fold = tree.children[model][1];
  scene.toggle([fold], true);
  assert.notEqual(JSON.stringify(scene.drawn().boxes), before);
  scene.toggle([fold], false);
  assert.equal(JSON.stringify(scene.drawn().boxes), before);
});

test("ten thousand ops in one line are few boxes at first, and any of them can be reached", () => {
  const nodes = Array.from({ length: 10_000 }, () => ({}));
  const model = new GraphModel(graphOf({ nodes, edges: nodes.slice(1).map((_, at) => [at, at + 1]) }), "g", true, LETTER);
  assert.ok(model.scene.drawn().boxes.length <= 60);
  const item = model.tree.ofNode[7_777];
  model.reveal(item);
  assert.equal(model.scene.drawn().boxOf.get(item)?.title, "op7777");
});
