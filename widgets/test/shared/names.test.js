import assert from "node:assert/strict";
import { test } from "node:test";
import { shown } from "../../src/shared/names.js";

test("names are on one line, with what cannot be seen as escapes", () => {
  assert.equal(shown("a\nb\t\x7f\u202e\u2028😀é"), "a\\nb\\t\\x7f\\u202e\\u2028😀é");
});

test("long names are cut by characters, not halves of them", () => {
  assert.equal(shown("😀".repeat(5), 4), "😀😀😀…");
  assert.equal(shown("\n".repeat(3), 4), "\\n\\…");
  assert.equal(shown("abcd", 4), "abcd");
});
