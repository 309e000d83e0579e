import assert from "node:assert/strict";
import { test } from "node:test";
import { GraphModel } from "../../src/graph/model/model.js";
import { subtitleOf } from "../../src/graph/data/words.js";
import { graphOf } from "../../test_helpers/graph.js";

const LETTER = { title: 7, subtitle: 6 };
const NONE = { counted_params: 0, counted_bytes: 0, tied_params: 0, unsized_params: 0 };

/** A model of an embedding, a head that is tied to it, two equal layers, something lazy, and the embedding once more. */
function tree() {
  const nodes = [{ kind: "module", name: "", part_id: 0 }, ...["emb", "head", "h.0", "h.1", "lazy"].map((name, at) => ({ kind: "module", name, part_id: at + 1 })),
    { kind: "module", name: "again", part_id: 6, attributes: '{"same_as": "emb"}' }, { kind: "parameter", name: "emb.weight", part_id: 1, dtype: "float32", shape: "[10, 150]" }];
  const part = (/** @type {string} */ module, /** @type {any} */ row) => ({ name: module || "Model", module, type: "Linear", parent_id: module ? 0 : undefined, ...NONE, ...row });
  return graphOf({ nodes, trees: ["g"], parts: [
    part("", { counted_params: 2000, counted_bytes: 8000, type: "Model" }), part("emb", { counted_params: 1500, counted_bytes: 6000, type: "Embedding", role: "embedding", dtypes: "float32" }),
    part("head", { tied_params: 1500, tied_to: "emb.weight" }), part("h.0", { counted_params: 250, counted_bytes: 1000, number: 0, repeat_of: 3 }),
    part("h.1", { counted_params: 250, counted_bytes: 1000, number: 1, repeat_of: 3 }), part("lazy", { unsized_params: 2 }), part("again", { type: "Embedding" }),
  ] });
}

test("a box of a model says its parameters and their share, what is tied once, and what has no size", () => {
  const data = tree();
  const { tree: items } = new GraphModel(data, "g", false, LETTER);
  const said = (/** @type {number} */ part) => subtitleOf(data, items, items.ofPart[part]);
  assert.deepEqual([0, 1, 2, 3, 5, 6].map(said), [
    "2,000 params", "Embedding · 1,500 params · 75.0 %", "Linear · 1,500 params, tied", "Linear · 250 params · 12.5 %",
    "Linear · params without sizes yet", "Embedding · same module as emb",
  ]);
  assert.equal(subtitleOf(data, items, items.parent[items.ofPart[3]]), "500 params · 25.0 %");
});

test("the details of a box have exact numbers, bytes and dtypes, and what is tied to what", () => {
  const data = tree();
  const model = new GraphModel(data, "g", false, LETTER);
  const fields = (/** @type {number} */ part) => Object.fromEntries(model.details(model.tree.ofPart[part]).fields);
  assert.deepEqual([fields(1).parameters, fields(1)["parameter bytes"], fields(1)["parameter dtype"]], ["1,500 (75.0 % of the model)", "5.86 KiB", "float32"]);
  assert.deepEqual([fields(2).parameters, fields(2).tied], ["0", "1,500 more, which count where they first stand: emb.weight"]);
  assert.equal(fields(5)["without sizes yet"], "2");
});

test("large numbers are short in a box, and a graph of ops says its nodes", () => {
  const part = { name: "a", type: "Model", ...NONE, counted_params: 6_738_415_616 };
  const rows = { nodes: [{ kind: "module", name: "a", part_id: 0 }], parts: [part, { ...part, name: "b", parent_id: 0 }] };
  const said = (/** @type {any} */ data) => subtitleOf(data, new GraphModel(data, "g", false, LETTER).tree, 2);
  assert.equal(said(graphOf({ ...rows, trees: ["g"] })), "Model · 6.74B params · 100.0 %");
  assert.equal(said(graphOf(rows)), "Model · 0 nodes");
});
