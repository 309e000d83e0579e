import assert from "node:assert/strict";
import { test } from "node:test";
import { isDead, kernelStatus, waitingText } from "../../src/table/kernel.js";

test("the status is the kernel's own, and unknown where the host does not tell", () => {
  assert.equal(kernelStatus({ widget_manager: { kernel: { status: "busy" } } }), "busy");
  assert.deepEqual([kernelStatus({}), kernelStatus({ widget_manager: { kernel: null } })], ["unknown", "unknown"]);
});

test("a busy kernel is waited for, only a dead one is a problem", () => {
  assert.match(waitingText("busy"), /^Waiting for the kernel, which is busy\./);
  assert.match(waitingText("idle"), /if it was restarted, run this cell again\.$/);
  assert.match(waitingText("unknown"), /^Waiting for the kernel\. It may be busy/);
  assert.deepEqual(["busy", "idle", "unknown", "restarting", "dead"].map(isDead), [false, false, false, false, true]);
});
