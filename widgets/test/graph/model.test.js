import assert from "node:assert/strict";
import { test } from "node:test";
import { centered, fitted, following, opening, revealing, widened, zoomed } from "../../src/graph/layout/camera.js";
import { waysOf } from "../../src/graph/model/colors.js";
import { announcement } from "../../src/graph/model/describe.js";
import { GraphModel } from "../../src/graph/model/model.js";
import { KEYS, movedTo } from "../../src/graph/layout/moves.js";
import { KINDS } from "../../src/graph/data/hierarchy.js";
import { nextMatch } from "../../src/graph/data/search.js";
import { askedFor, traitsOf } from "../../src/graph/data/selection.js";
import { actionOf } from "../../src/shared/keys.js";
import { graphOf, layered } from "../../test_helpers/graph.js";

const LETTER = { title: 7, subtitle: 6 };
const VIEW = { width: 400, height: 300 };

test("a search finds nodes and parts in the order of the outline, and goes around its end", () => {
  const model = new GraphModel(layered(2), "g", true, LETTER);
  const { tree } = model;
  assert.deepEqual(model.search("MLP").map((item) => tree.row[item]), [3, 5]);
  assert.deepEqual(model.search("layers.1").map((item) => tree.row[item]), [2]);
  assert.deepEqual(model.search("op(").length, 0);
  const [first, last] = model.search("mlp");
  assert.deepEqual([nextMatch([first, last], -1, 1, tree), nextMatch([first, last], last, 1, tree), nextMatch([first, last], tree.ofNode[4], -1, tree)], [first, first, first]);
});

test("colors are those of the nodes; of a part what all of them have in common", () => {
  const data = layered(2);
  const model = new GraphModel(data, "g", true, LETTER);
  const { categories, codes } = model.colors("role");
  const of = (/** @type {number} */ item) => categories[codes[item]]?.label;
  assert.deepEqual([1, 2, 3].map((row) => of(model.tree.ofNode[row])), ["embedding", "norm", "mlp"]);
  assert.deepEqual([of(model.tree.ofPart[1]), of(model.tree.ofPart[0])], ["block", undefined]);
  assert.deepEqual(waysOf(data).map(([name]) => name), ["role", "dtype", "device"].filter((name) => name === "role"));
});

test("numbers of another frame are summed for parts and colored by their share", () => {
  const values = [{ name: "self_time_us", label: "self time", format: "duration", how: "sum", isInclusive: false, isScaled: false, center: null }];
  const nodes = [{ part_id: 0, self_time_us: 60 }, { part_id: 0, self_time_us: 30 }, { self_time_us: 10 }, {}];
  const model = new GraphModel(graphOf({ nodes, parts: [{ name: "a" }], values }), "g", true, LETTER);
  const { categories, codes } = model.colors("self_time_us");
  assert.deepEqual([model.tree.ofPart[0], ...model.tree.ofNode].map((item) => categories[codes[item]]?.label),
    ["from 50 % of its part", "from 50 % of its part", "from 20 % of its part", "from 5 % of its part", undefined]);
  assert.deepEqual(model.details(model.tree.ofPart[0]).fields[0], ["self time", "90.0 µs"]);
});

test("details name what a node reads and gives, with its attributes; an announcement says it in a sentence", () => {
  const nodes = [{ name: "x", kind: "input" }, { attributes: '{"eps": 1e-05, "loc": "</script>"}', module: "" }];
  const model = new GraphModel(graphOf({ nodes, edges: [[0, 1], [null, 1]] }), "g", true, LETTER);
  const { attributes, lists, fields } = model.details(model.tree.ofNode[1]);
  assert.deepEqual(attributes, [["eps", "0.00001"], ["loc", "</script>"]]);
  assert.deepEqual(lists[0].tensors.map(({ node, name, tensor }) => [node, name, tensor]), [[0, "x", "float32 [2, ?] · t0"], [-1, "outside of the graph", "float32 [2, ?] · t1"]]);
  assert.ok(fields.some(([label, text]) => label === "module" && text === "(root)"));
  assert.equal(announcement(model.data, model.tree, model.tree.ofNode[1], false, model.edges), "op1, reads 2, read by 0");
});

test("arrows follow lines and go along a level", () => {
  const model = new GraphModel(graphOf({ nodes: [{}, {}, {}, {}], edges: [[0, 1], [0, 2], [1, 3], [2, 3]] }), "g", true, LETTER);
  const at = (/** @type {number} */ row) => model.tree.ofNode[row];
  const to = (/** @type {string} */ key, /** @type {number} */ row) => model.tree.row[movedTo(key, model.scene.drawn(), at(row))];
  assert.deepEqual([to("ArrowDown", 1), to("ArrowUp", 1), to("ArrowUp", 0), to("End", 0), to("Home", 3)], [3, 0, 0, 3, 0]);
  assert.deepEqual(new Set([to("ArrowRight", 1), to("ArrowLeft", 2)]).size, 2);
  assert.deepEqual([actionOf(KEYS, { key: "N" }), actionOf(KEYS, { key: "F" }), actionOf(KEYS, { key: "f", ctrlKey: true })], ["match", "fit", undefined]);
});

test("a selected part holds the ops of its nodes and its module; a selected op is found by its id", () => {
  const nodes = [{ part_id: 0, op_id: 7 }, { part_id: 0, op_id: 5 }, {}];
  const model = new GraphModel(graphOf({ nodes, parts: [{ name: "a", module: "m.a" }] }), "g", true, LETTER);
  const { selection, selected_part_id } = traitsOf(model, model.tree.ofPart[0]);
  assert.deepEqual([selected_part_id, selection?.module, [...new Int32Array(selection?.ids.buffer ?? new ArrayBuffer(0))]], [0, "m.a", [5, 7]]);
  assert.equal(traitsOf(model, model.tree.ofNode[1]).selected_op_id, 5);
  const none = { selected_node_id: null, selected_part_id: null, selected_op_id: null };
  assert.deepEqual(askedFor(model.data, { ...none, selected_op_id: 5 }), { table: "nodes", row: 1 });
  assert.equal(askedFor(model.data, { ...none, selected_op_id: 6 }), null);
});

test("what a selected node reads on other levels is connected with it all the same", () => {
  const model = new GraphModel(graphOf({ nodes: [{ part_id: 0 }, { part_id: 1 }], edges: [[0, 1]], parts: [{ name: "a" }, { name: "b" }] }), "g", true, LETTER);
  const [a, b] = [model.tree.ofNode[0], model.tree.ofNode[1]];
  model.reveal(b);
  assert.deepEqual(model.far(b).map(({ from }) => from.title), ["a"]);
  model.reveal(a);
  assert.deepEqual(model.far(b).map(({ from }) => from.title), ["op0"]);
});

test("the camera keeps the point that is zoomed about, shows a box whole, and follows it when it moves", () => {
  const camera = { x: 10, y: 20, scale: 1 };
  const near = zoomed(camera, 2, { x: 100, y: 50 });
  assert.deepEqual([near.x + 100 / near.scale, near.y + 50 / near.scale], [110, 70]);
  assert.equal(fitted({ x: 0, y: 0, width: 3680, height: 10 }, VIEW).scale, 0.1);
  const box = { x: 1000, y: 1000, width: 100, height: 50 };
  const shown = revealing(camera, box, VIEW);
  assert.ok(shown.x <= 1000 && shown.x + 400 >= 1100 && shown.y + 300 >= 1050);
  assert.deepEqual(revealing(shown, box, VIEW), shown);
  assert.deepEqual(following(camera, box, { ...box, x: 1100 }), { x: 110, y: 20, scale: 1 });
  assert.deepEqual(centered(box, 1, VIEW), { x: 850, y: 875, scale: 1 });
});

test("a graph opens down to what repeats: through its only part, or the forward of several, and folds to the top", () => {
  const parts = [{ name: "net" }, { name: "layers", parent_id: 0 }, ...[0, 1].map((name) => ({ name: `${name}`, parent_id: 1, repeat_of: 2 }))];
  const nodes = [{ kind: "input" }, { part_id: 0 }, { part_id: 2 }, { part_id: 3 }];
  const opened = (/** @type {any[]} */ all) => {
    const model = new GraphModel(graphOf({ nodes, edges: [[0, 1]], parts: all }), "g", true, LETTER);
    const isOpen = (/** @type {number} */ part) => model.scene.open.has(model.tree.ofPart[part]);
    const first = all.map((_, part) => isOpen(part));
    model.fold();
    return [first, all.map((_, part) => isOpen(part))];
  };
  assert.deepEqual(opened(parts), [[true, false, false, false], [false, false, false, false]]);
  const phases = [...parts.map((part, row) => (row ? part : { ...part, phase: "backward" })), { name: "forward", phase: "forward" }, { name: "x", parent_id: 4 }];
  nodes.push({ part_id: 5 }, { part_id: 4 });
  assert.deepEqual(opened(phases)[0], [false, false, false, false, true, true]);
});

test("an area is widened as far as the view has room for it", () => {
  const view = { width: 332, height: 132 };
  assert.deepEqual(widened({ x: 0, y: 0, width: 200, height: 20 }, 30, { x: 0, y: 0, scale: 1 }, view), { x: -30, y: -30, width: 260, height: 80 });
  assert.deepEqual(widened({ x: 0, y: 0, width: 200, height: 20 }, 90, { x: 0, y: 0, scale: 1 }, view), { x: -50, y: -40, width: 300, height: 100 });
  assert.deepEqual(widened({ x: 5, y: 5, width: 400, height: 200 }, 90, { x: 0, y: 0, scale: 1 }, view), { x: 5, y: 5, width: 400, height: 200 });
});

test("a graph opens whole where it can be read so, else at its top, and no more parts than fit but for the way to what repeats", () => {
  assert.deepEqual(opening({ width: 100, height: 100 }, VIEW), fitted({ x: 0, y: 0, width: 100, height: 100 }, VIEW));
  const tall = opening({ width: 100, height: 5000 }, VIEW);
  assert.deepEqual([tall.scale, tall.y, tall.x], [1, -16, -150]);
  const wide = opening({ width: 5000, height: 100 }, VIEW);
  assert.equal(wide.scale, 0.45);
  const open = (/** @type {{width: number, height: number}} */ view, hasRepeats = false) => {
    const data = layered(2);
    if (!hasRepeats) data.parts.numbers.repeat_of.fill(NaN);
    const model = new GraphModel(data, "g", true, LETTER);
    model.openToFit(view);
    return model.scene.open.has(model.tree.ofPart[0]);
  };
  assert.deepEqual([open({ width: 400, height: 400 }), open({ width: 400, height: 60 }), open({ width: 400, height: 60 }, true)], [true, false, true]);
});

test("what repeats is found on the way down, and rings, meshes and SBP are colors and can be searched for", () => {
  const model = new GraphModel(layered(3), "g", true, LETTER);
  assert.equal(model.tree.kind[model.repeatsIn(0)], KINDS.repeats);
  const data = graphOf({ nodes: [{ ring: "ring 32", sbp: "S(0)" }, { ring: "ring 28" }] });
  const plain = new GraphModel(data, "g", true, LETTER);
  assert.equal(plain.repeatsIn(0), -1);
  assert.deepEqual(waysOf(data).map(([name]) => name), ["sbp", "ring"]);
  assert.deepEqual(plain.search("ring 32").map((item) => plain.tree.row[item]), [0]);
  assert.deepEqual(plain.details(plain.tree.ofNode[0]).fields.filter(([name]) => ["sbp", "ring"].includes(name)), [["sbp", "S(0)"], ["ring", "ring 32"]]);
});

test("what was open stays open where only the colors of a graph change", () => {
  const [before, after] = [0, 1].map(() => new GraphModel(layered(3), "g", true, LETTER));
  before.fold();
  before.reveal(before.tree.ofNode[4]);
  after.reopen(before.scene.open);
  assert.deepEqual([...after.scene.open].sort(), [...before.scene.open].sort());
});
