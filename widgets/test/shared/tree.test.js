import assert from "node:assert/strict";
import { test } from "node:test";
import { treeKey, visibleNodes } from "../../src/shared/tree.js";

const node = (/** @type {string} */ name, /** @type {number} */ depth, hasChildren = false) => ({ key: name, name, depth, hasChildren });
const nodes = [node("net", 0, true), node("blocks", 1, true), node("0", 2), node("1", 2), node("head", 1), node("other", 0)];
const names = (/** @type {Set<string>} */ open) => visibleNodes(nodes, open).map(({ name }) => name);

test("only what is in open nodes is visible", () => {
  assert.deepEqual(names(new Set()), ["net", "other"]);
  assert.deepEqual(names(new Set(["net"])), ["net", "blocks", "head", "other"]);
  assert.deepEqual(names(new Set(["net", "blocks"])), ["net", "blocks", "0", "1", "head", "other"]);
});

test("an open node in a closed one stays hidden", () => {
  assert.deepEqual(names(new Set(["blocks"])), ["net", "other"]);
});

test("arrows move, open and close as in the ARIA tree pattern", () => {
  const open = new Set(["net"]);
  const visible = visibleNodes(nodes, open);
  assert.deepEqual(treeKey("ArrowDown", 0, visible, open), { go: 1 });
  assert.deepEqual(treeKey("ArrowUp", 0, visible, open), { go: 0 });
  assert.deepEqual(treeKey("ArrowRight", 0, visible, open), { go: 1 });
  assert.deepEqual(treeKey("ArrowRight", 1, visible, open), { open: "blocks" });
  assert.equal(treeKey("ArrowRight", 2, visible, open), null);
  assert.deepEqual(treeKey("ArrowLeft", 0, visible, open), { close: "net" });
  assert.deepEqual(treeKey("ArrowLeft", 2, visible, open), { go: 0 });
  assert.deepEqual(treeKey("End", 0, visible, open), { go: 3 });
  assert.deepEqual(treeKey("Home", 3, visible, open), { go: 0 });
});

test("a letter goes to the next name that starts with it, around the end", () => {
  const visible = visibleNodes(nodes, new Set(["net"]));
  assert.deepEqual(treeKey("H", 0, visible, new Set()), { go: 2 });
  assert.deepEqual(treeKey("n", 3, visible, new Set()), { go: 0 });
  assert.deepEqual(treeKey("z", 1, visible, new Set()), { go: 1 });
});
