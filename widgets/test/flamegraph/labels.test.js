import assert from "node:assert/strict";
import { test } from "node:test";
import { labelOf, shorter } from "../../src/flamegraph/layout/labels.js";

test("a name that fits stays as it is", () => {
  assert.equal(shorter("layers.3 (Block)", 16), "layers.3 (Block)");
});

test("one of many equal modules keeps its number, however narrow", () => {
  const name = "layers.3 (LlamaDecoderLayer)";
  assert.deepEqual([20, 12, 8, 7, 2, 1].map((letters) => shorter(name, letters)), [name, "layers.3", "layers.3", ".3", ".3", ".3"]);
  assert.deepEqual([shorter("layers.12", 4), shorter("layers.0.1 (Linear)", 5), shorter("3 (Linear)", 1)], [".12", ".0.1", "3"]);
});

test("other modules and ops are told by their beginning, ops without their namespace", () => {
  assert.equal(shorter("self_attn (LlamaAttention)", 6), "self_attn (LlamaAttention)");
  assert.deepEqual([shorter("aten.mm.default", 8), shorter("aten::mm", 2), shorter("torch.optim.AdamW.step", 9)], ["mm", "mm", "optim.AdamW.step"]);
  assert.equal(shorter("Memcpy HtoD 3", 5), "Memcpy HtoD 3");
});

test("a mark leaves room for the name: only its sign stays where the box is narrow", () => {
  assert.equal(labelOf("layers.3 (Block)", "", 4), ".3");
  assert.deepEqual([30, 17, 10, 5].map((letters) => labelOf("layers.3 (Block)", "▲ +20 %", letters)), ["▲ +20 % layers.3 (Block)", "▲ +20 % layers.3", "▲ layers.3", "▲ .3"]);
  assert.deepEqual([labelOf("aten.mm.default", "▼ −50 %", 8), labelOf("old op", "gone", 12)], ["▼ mm", "gone old op"]);
});

test("a node of autograd is told by what it computes", () => {
  assert.equal(shorter("autograd::engine::evaluate_function: MmBackward0", 20), "MmBackward0");
});
