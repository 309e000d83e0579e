import assert from "node:assert/strict";
import { test } from "node:test";
import { byCharacters, quoted, shown, stripped, words } from "../../../src/report/columns/words.js";

test("names are on one line, with what cannot be seen as escapes", () => {
  assert.equal(shown("a\nb\t\x7f\u202e\u2028😀é"), "a\\nb\\t\\x7f\\u202e\\u2028😀é");
});

test("long names are cut by characters, not halves of them", () => {
  assert.equal(shown("😀".repeat(5), 4), "😀😀😀…");
  assert.equal(shown("\n".repeat(3), 4), "\\n\\…");
  assert.equal(shown("abcd", 4), "abcd");
});

test("texts are quoted as Python does", () => {
  assert.deepEqual(["a'b", "a'\"b\\", "\x00\u00a0é\ufeff😀"].map(quoted), ['"a\'b"', "'a\\'\"b\\\\'", "'\\x00\\xa0é\\ufeff😀'"]);
});

test("blanks are Python's", () => {
  assert.equal(stripped("\x1c\u2003 a b\ufeff\x85"), "a b\ufeff");
  assert.deepEqual(words(" a\x1fb \u3000c "), ["a", "b", "c"]);
});

test("texts are ordered by characters, also beyond 0xffff", () => {
  assert.deepEqual(["b", "😀", "\uff00", "a", "Ab", "a\u0301", ""].sort(byCharacters), ["", "Ab", "a", "a\u0301", "b", "\uff00", "😀"]);
});
