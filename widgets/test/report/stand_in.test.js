import assert from "node:assert/strict";
import { test } from "node:test";
import { isDead, kernelStatus } from "../../src/table/kernel.js";
import { createRequests } from "../../src/table/requests.js";
import { standInModel } from "../../src/report/stand_in.js";

test("changes are told to whoever listens, once each", () => {
  const model = standInModel({ row: 1 });
  let told = 0;
  const listener = () => (told += 1);
  model.on("change:row", listener);
  model.set("row", 1);
  model.set("row", 2);
  model.off("change:row", listener);
  model.set("row", 3);
  assert.deepEqual([model.get("row"), told, model.get("absent")], [3, 1, null]);
});

test("an answer comes later, as a message of the kernel", async () => {
  const model = standInModel({}, ({ id, size }) => ({ kind: "rows", id, matched: size * 2 }));
  const requests = createRequests((message) => model.send(message), { name: "view" });
  model.on("msg:custom", requests.receive);
  const answer = requests.ask("rows", { kind: "rows", size: 4 });
  assert.equal(requests.waiting, 1);
  assert.equal((await answer)?.matched, 8);
});

test("a message that nothing answers is let go, and no kernel looks dead", async () => {
  const model = standInModel({});
  model.on("msg:custom", () => assert.fail("nothing answers"));
  model.send({ kind: "rows" });
  await new Promise((resolve) => setTimeout(resolve, 5));
  assert.equal(isDead(kernelStatus(model)), false);
});
