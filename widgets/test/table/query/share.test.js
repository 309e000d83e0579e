// A share is filtered in percent, as its column shows it.

import assert from "node:assert/strict";
import { test } from "node:test";

import { cellText } from "../../../src/table/cells.js";
import { parsed } from "../../../src/table/query/filter_text.js";

test("percent are hundredths, with or without their sign", () => {
  assert.deepEqual(parsed("self_fraction", "share", ">5"), { column: "self_fraction", op: "above", value: 0.05 });
  assert.deepEqual(parsed("self_fraction", "share", "<= 25 %"), { column: "self_fraction", op: "at_most", value: 0.25 });
  assert.equal(cellText("self_fraction", "share", 0.123), "12.3 %");
});

test("a percent sign is no unit of other numbers", () => {
  assert.throws(() => parsed("flops", "flops", ">5 %"), /'5 %' is not a number; .* with a unit of k, M, G, T\.$/);
  assert.throws(() => parsed("self_fraction", "share", ">5ms"), /with a unit of %\.$/);
});
