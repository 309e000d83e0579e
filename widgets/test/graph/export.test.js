import assert from "node:assert/strict";
import { test } from "node:test";
import { fileName, pageOf, tooLargeFor } from "../../src/graph/canvas/export.js";
import { Painter } from "../../src/graph/canvas/painter.js";
import { escaped, SvgContext } from "../../src/graph/canvas/svg_context.js";
import { GraphModel } from "../../src/graph/model/model.js";
import { graphOf, layered } from "../../test_helpers/graph.js";

const LETTER = { title: 7, subtitle: 6 };
/** Every letter is seven pixels wide. @param {string} text */
const measured = (text) => ({ width: 7 * text.length, middle: 4 });

/** @param {any} data */
function lookOf(data) {
  const model = new GraphModel(data, "g", false, LETTER);
  return { drawn: model.scene.drawn(), colors: model.colors("role"), focus: -1, selected: -1, hover: -1, matches: new Set(), far: [], labelOf: (/** @type {any} */ line) => model.labelOf(line) };
}

test("what the painter draws is recorded as SVG: a box, its stripe, its texts, a line with its arrow and its label", () => {
  const look = lookOf(graphOf({ nodes: [{ role: "norm", op: "a<b" }, {}], edges: [[0, 1]] }));
  const context = new SvgContext(measured, (color) => (color.startsWith("#") ? color : "#123456"));
  new Painter(/** @type {any} */ (context)).paint(look, { x: -5, y: 0, scale: 1 }, { width: 200, height: 100 }, 1);
  const file = context.file(200, 100, 'a "title"');
  assert.match(file, /^<svg xmlns="[^"]+" width="200" height="100" viewBox="0 0 200 100" xml:space="preserve"><title>a &quot;title&quot;<\/title>/);
  assert.match(file, /<g transform="matrix\(1 0 0 1 5 0\)">/);
  assert.deepEqual([...file.matchAll(/<text [^>]*>([^<]*)<\/text>/g)].map(([, text]) => text), ["a&lt;b", "norm", "op1", "float32 [2, ?]"]);
  assert.match(file, /stroke="#0796b8" stroke-width="5"/);
  assert.match(file, /fill="#0796b8" fill-opacity="0.16"/);
  assert.doesNotMatch(file, /color-mix|NaN|undefined/);
  assert.equal(file.match(/<g /g)?.length, file.match(/<\/g>/g)?.length);
});

test("text stays text in SVG, whatever is in it", () => {
  assert.equal(escaped('</text><script>&"\u0000\u001b\ud800 é漢'), "&lt;/text&gt;&lt;script&gt;&amp;&quot;\ufffd\ufffd\ufffd é漢");
});

test("a page has room for title, legend and picture, whichever is the widest", () => {
  const look = lookOf(layered(2));
  const page = pageOf(look, "t".repeat(60), "mono", measured);
  assert.equal(page.width, 60 * 7 + 32);
  assert.ok(page.entries.every(({ x, text }) => x + measured(text).width <= page.width));
  assert.deepEqual(page.entries.map(({ text }) => text), ["embedding (1 node)", "norm (2 nodes)", "block", "mlp (2 nodes)", "head (1 node)"]);
  assert.equal(page.height, page.top + look.drawn.height + 16);
  const long = pageOf(look, "t".repeat(500), "mono", measured);
  assert.ok(long.title.endsWith("…") && measured(long.title).width <= long.width);
});

test("what a browser cannot draw as PNG is refused with one sentence", () => {
  assert.equal(tooLargeFor(16_384, 3_000), "");
  assert.match(tooLargeFor(16_385, 10), /^A PNG of 16,385 × 10 pixels is too large \(16,384 a side and 64 million at most\); close some parts, or save SVG\.$/);
  assert.notEqual(tooLargeFor(9_000, 9_000), "");
});

test("a file is called as its model, in letters that any disk takes", () => {
  assert.deepEqual([["Llama"], ["../a b/c:d"], ["net.log", "block 0"], ["漢字"], ["<>"]].map((names) => fileName(names, "svg")),
    ["Llama.svg", "a_b_c_d.svg", "net.log-block_0.svg", "漢字.svg", "graph.svg"]);
  assert.equal(fileName(["x".repeat(300)], "png").length, 84);
});
