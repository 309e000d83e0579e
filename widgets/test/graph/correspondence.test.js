import assert from "node:assert/strict";
import { test } from "node:test";
import { colored, waysOf } from "../../src/graph/model/colors.js";
import { comparedWords, Correspondence, counterpartOf } from "../../src/graph/data/correspondence.js";
import { announcement } from "../../src/graph/model/describe.js";
import { foldAround } from "../../src/graph/data/hierarchy.js";
import { GraphModel } from "../../src/graph/model/model.js";
import { compared } from "../../test_helpers/graph.js";

const LETTER = { title: 7, subtitle: 6 };
const SAME = { relation: "same" };

/** Two layers of a norm and a product each, and a loss, against one such layer, whose product is in another dtype, and a cast. */
function pair() {
  const layer = (/** @type {string} */ graph, /** @type {number} */ part) => [{ graph, part_id: part, op: "norm" }, { graph, part_id: part, op: "mm" }];
  const data = compared({
    nodes: [...layer("l", 0), ...layer("l", 1), ...layer("r", 2), { graph: "r", kind: "parameter", part_id: 2 }, { graph: "r", op: "cast" }, { graph: "l", op: "loss" }],
    parts: [{ graph: "l", name: "0", number: 0, repeat_of: 0 }, { graph: "l", name: "1", number: 1, repeat_of: 0 }, { graph: "r", name: "only" }],
  }, [
    { level: "part", left_id: 0, right_id: 2 }, { level: "part", left_id: 1 },
    { level: "op", left_id: 0, right_id: 4, ...SAME }, { level: "op", left_id: 1, right_id: 5, relation: "cast", message: "float32 on the left, float16 on the right" },
    { level: "op", left_id: 2 }, { level: "op", left_id: 3 }, { level: "op", right_id: 7, relation: "cast" },
  ]);
  data.correspondence = new Correspondence(data.comparison);
  const [left, right] = ["l", "r"].map((graph) => new GraphModel(data, graph, false, LETTER));
  return { data, left, right };
}

test("a row knows its counterparts, of which it may have several, and the side of its graph", () => {
  const { data } = pair();
  const { correspondence } = data;
  assert.deepEqual([correspondence.partnersOf("nodes", 1), correspondence.partnersOf("nodes", 5), correspondence.partnersOf("nodes", 2)], [[5], [1], []]);
  assert.deepEqual(["l", "r"].map((graph) => correspondence.sideOf(graph)), [0, 1]);
  const rows = compared({ nodes: [{ graph: "l" }, { graph: "l" }, { graph: "r" }] }, [
    { level: "op", left_id: 0, right_id: 2, ...SAME }, { level: "op", left_id: 1, right_id: 2, relation: "reshape", message: "[2] on the left, [1, 2] on the right" },
  ]).comparison;
  const many = new Correspondence(rows);
  assert.deepEqual([many.partnersOf("nodes", 2), many.stateOf("nodes", 2), many.stateOf("nodes", 0)], [[0, 1], 2, 0]);
});

test("what compares how is said in words", () => {
  const { data, left, right } = pair();
  const words = (/** @type {GraphModel} */ model, /** @type {number[]} */ nodes) => nodes.map((node) => comparedWords(data, model.tree, model.tree.ofNode[node]));
  assert.deepEqual(words(left, [0, 1, 2]), ["same on both sides", "differs: float32 on the left, float16 on the right", "only on the left"]);
  assert.deepEqual(words(right, [7]), ["only on the right (cast)"]);
  assert.equal(comparedWords(data, left.tree, left.tree.ofPart[0]), "on both sides");
  assert.equal(data.correspondence.wordsOf("nodes", 6), "not compared");
  assert.match(announcement(data, right.tree, right.tree.ofNode[7], false, right.edges), /^cast, .*only on the right \(cast\)/);
  assert.deepEqual(right.details(right.tree.ofNode[7]).fields[0], ["compared", "only on the right (cast)"]);
});

test("a group leads to what corresponds to its first member that has a counterpart, and to the group around that", () => {
  const { data, left, right } = pair();
  const repeats = foldAround(left.tree, left.tree.ofPart[1]);
  assert.deepEqual(counterpartOf(data.correspondence, left.tree, repeats), { table: "parts", rows: [2], isGroup: true });
  assert.equal(foldAround(right.tree, right.tree.ofPart[2]), right.tree.ofPart[2]);
  assert.deepEqual(counterpartOf(data.correspondence, left.tree, left.tree.ofPart[1]).rows, []);
});

test("the colors of a difference are those of the nodes, and of a part what is in it together", () => {
  const { data, left, right } = pair();
  const { codes, categories, counts } = colored(data, left.tree, "difference");
  const label = (/** @type {number} */ item) => categories[codes[item]].label;
  assert.deepEqual([0, 1, 2].map((node) => label(left.tree.ofNode[node])), ["same", "other dtype", "only here"]);
  assert.deepEqual([0, 1].map((part) => label(left.tree.ofPart[part])), ["differences inside", "only here"]);
  assert.deepEqual(counts, [1, 1, 0, 2, 0]);
  assert.deepEqual([left.noteOf(left.tree.ofPart[0]), right.noteOf(right.tree.ofNode[7])], ["≠ inside", "only here"]);
  assert.deepEqual(waysOf(data)[0], ["difference", "difference"]);
});

test("without a comparison nothing is said of one", () => {
  const { data, left } = pair();
  const alone = new GraphModel({ ...data, correspondence: undefined }, "l", false, LETTER);
  assert.deepEqual([alone.noteOf(1), comparedWords(alone.data, alone.tree, 1)], ["", ""]);
  assert.ok(!waysOf(alone.data).some(([way]) => way === "difference"));
  assert.equal(left.noteOf(0), "≠ inside");
});
