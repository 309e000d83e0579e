import assert from "node:assert/strict";
import { test } from "node:test";
import { createRequests } from "../../src/table/requests.js";

function recorder(options = {}) {
  /** @type {any[]} */
  const sent = [];
  return { sent, requests: createRequests((message) => sent.push(message), { name: "view", ...options }) };
}

test("an answer reaches the request with its id", async () => {
  const { sent, requests } = recorder();
  const answer = requests.ask("rows", { kind: "rows", offset: 5 });
  assert.deepEqual(sent, [{ kind: "rows", offset: 5, id: "view-1" }]);
  requests.receive({ kind: "rows", id: "view-1", matched: 3 });
  assert.deepEqual(await answer, { kind: "rows", id: "view-1", matched: 3 });
});

test("a newer request of the same topic drops the older one and its late answer", async () => {
  const { requests } = recorder();
  const older = requests.ask("rows", {});
  const newer = requests.ask("rows", {});
  requests.receive({ kind: "rows", id: "view-2", matched: 2 });
  requests.receive({ kind: "rows", id: "view-1", matched: 1 });
  assert.equal(await older, null);
  assert.equal((await newer)?.matched, 2);
});

test("topics do not drop each other", async () => {
  const { requests } = recorder();
  const rows = requests.ask("rows", {});
  requests.ask("detail", {}).catch(() => {});
  requests.receive({ kind: "rows", id: "view-1" });
  assert.notEqual(await rows, null);
  requests.close();
});

test("answers to another view pass by", () => {
  const { requests } = recorder();
  requests.ask("rows", {});
  requests.receive({ kind: "rows", id: "other-1" });
  assert.equal(requests.waiting, 1);
  requests.close();
  assert.equal(requests.waiting, 0);
});

test("an error answer rejects with the kernel's message", async () => {
  const { requests } = recorder();
  const answer = requests.ask("rows", {});
  requests.receive({ kind: "error", id: "view-1", message: "no such op" });
  await assert.rejects(answer, /no such op/);
});

test("waiting is told again and again, and an answer is taken however late it comes", async (context) => {
  let [waits, toldTwice] = [0, () => {}];
  const told = new Promise((resolve) => (toldTwice = () => waits > 1 && resolve(waits)));
  const { requests } = recorder({ patience: 5, onWait: () => (waits += 1, toldTwice()) });
  context.after(() => requests.close());
  const answer = requests.ask("rows", {});
  await told;
  requests.receive({ kind: "rows", id: "view-1", matched: 3 });
  assert.equal((await answer)?.matched, 3);
  const before = waits;
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(waits, before);
});
