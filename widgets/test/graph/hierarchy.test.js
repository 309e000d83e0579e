import assert from "node:assert/strict";
import { test } from "node:test";
import { Edges, IN, OUT } from "../../src/graph/data/edges.js";
import { foldRepeats, groupRuns, MOST } from "../../src/graph/data/groups.js";
import { hierarchyOf, pathTo, ROOT } from "../../src/graph/data/hierarchy.js";
import { subtitleOf, titleOf } from "../../src/graph/data/words.js";
import { graphOf, layered } from "../../test_helpers/graph.js";

/** Titles of the children of an item. @param {any} data @param {any} tree @param {number} item */
const below = (data, tree, item) => tree.children[item].map((/** @type {number} */ child) => titleOf(data, tree, child));

test("repeats are folded into one item beside other nodes, which can be unfolded", () => {
  const data = layered(6);
  const tree = hierarchyOf(data, "g", true);
  assert.deepEqual(below(data, tree, ROOT), ["n0", "model"]);
  const model = tree.children[ROOT][1];
  assert.deepEqual(below(data, tree, model), ["op1", "Layer × 6", "op14"]);
  const fold = tree.children[model][1];
  assert.deepEqual(below(data, tree, fold), ["0", "1", "2", "3", "4", "5"]);
  assert.deepEqual([tree.size[ROOT], tree.size[fold], subtitleOf(data, tree, fold)], [15, 12, "12 nodes"]);
  assert.equal(pathTo(tree, tree.ofNode[5]).length, 4);
});

test("a part that holds nothing but repeats is not folded again", () => {
  assert.deepEqual(foldRepeats([1, 2, 3], () => 0, () => -1), [1, 2, 3]);
  assert.deepEqual(foldRepeats([1, 2, 3, 4], (child) => (child < 3 ? 0 : -1), (members) => -members.length), [-2, 3, 4]);
});

test("a long level becomes groups of groups, none longer than the bound, and loses no child", () => {
  /** @type {number[][]} */
  const groups = [];
  const children = Array.from({ length: 100_000 }, (_, at) => at);
  const isLeaf = (/** @type {number} */ child) => child >= 0;
  const top = groupRuns(children, isLeaf, (members) => -groups.push(members));
  const flat = (/** @type {number[]} */ items) => items.flatMap((/** @type {number} */ item) => (item < 0 ? /** @type {any} */ (flat(groups[-item - 1])) : [item]));
  assert.deepEqual(flat(top), children);
  assert.ok([top, ...groups].every((level) => level.length <= MOST));
});

test("a few parts stay visible between the groups of a long level", () => {
  const children = [...Array.from({ length: 200 }, (_, at) => at), -5, ...Array.from({ length: 200 }, (_, at) => 300 + at)];
  const top = groupRuns(children, (child) => child >= 0, (members) => 1000 + members.length);
  assert.ok(top.includes(-5) && top.length <= MOST);
});

test("parameters are left out unless asked for, and the node of a module is its part", () => {
  const data = graphOf({ nodes: [{ kind: "module", name: "a", part_id: 0 }, { kind: "parameter", part_id: 0 }, { part_id: 0 }], parts: [{ name: "a", module: "a" }] });
  const [few, all] = [hierarchyOf(data, "g", false), hierarchyOf(data, "g", true)];
  assert.deepEqual([few.size[ROOT], few.hidden, few.own[0], all.size[ROOT], all.hidden], [1, 1, 0, 2, 0]);
});

test("parts that hold each other end up at the top", () => {
  const data = graphOf({ nodes: [{ part_id: 0 }, { part_id: 1 }], parts: [{ name: "a", parent_id: 1 }, { name: "b", parent_id: 0 }] });
  assert.equal(hierarchyOf(data, "g", true).size[ROOT], 2);
});

test("edges are summed on the level where their ends part, and at the border of what they leave", () => {
  const data = layered(6);
  const tree = hierarchyOf(data, "g", true);
  const edges = new Edges(data.edges, tree);
  const model = tree.children[ROOT][1];
  const [first, fold, last] = tree.children[model];
  const ends = (/** @type {number} */ item) => edges.linksIn(item).map(({ from, to, edges: inside }) => [from, to, inside.length]);
  assert.deepEqual(ends(ROOT), [[tree.children[ROOT][0], model, 1]]);
  assert.deepEqual(ends(model), [[first, fold, 1], [fold, last, 1], [IN, first, 1]]);
  assert.deepEqual(ends(tree.children[fold][0]).slice(1).map(([from, to]) => [from, to].find((end) => end < 0)), [IN, OUT]);
});
