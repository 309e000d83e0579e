// The model of one part of a composite widget: its own traits and messages, and no others.
import assert from "node:assert/strict";
import { test } from "node:test";

import { partModel } from "../../src/composite/part_model.js";
import { standInModel } from "../../src/report/stand_in.js";

test("a part has the traits that bear its name", () => {
  const whole = standInModel({ flamegraph_selected_op_id: 1, op_table_selected_op_id: 2 });
  const part = partModel(whole, "op_table");
  assert.equal(part.get("selected_op_id"), 2);
  part.set("selected_op_id", 3);
  assert.deepEqual([whole.get("flamegraph_selected_op_id"), whole.get("op_table_selected_op_id")], [1, 3]);
});

test("a part hears of its own changes until it stops listening", () => {
  const whole = standInModel({ flamegraph_selected_op_id: null, op_table_selected_op_id: null });
  const part = partModel(whole, "op_table");
  let heard = 0;
  const listener = () => (heard += 1);
  part.on("change:selected_op_id", listener);
  whole.set("flamegraph_selected_op_id", 1);
  whole.set("op_table_selected_op_id", 1);
  part.off("change:selected_op_id", listener);
  whole.set("op_table_selected_op_id", 2);
  assert.equal(heard, 1);
});

test("a message says which part it is of, and so does its answer", async () => {
  const whole = standInModel({}, (message) => ({ part: message.part, content: { kind: message.content.kind } }));
  const [table, flame] = ["op_table", "flamegraph"].map((name) => partModel(whole, name));
  /** @type {any[]} */
  const heard = [];
  const listener = (/** @type {any} */ content) => heard.push(["op_table", content.kind]);
  table.on("msg:custom", listener);
  flame.on("msg:custom", (/** @type {any} */ content) => heard.push(["flamegraph", content.kind]));
  table.send({ kind: "rows" });
  await Promise.resolve();
  table.off("msg:custom", listener);
  table.send({ kind: "detail" });
  await Promise.resolve();
  assert.deepEqual(heard, [["op_table", "rows"]]);
});
