import assert from "node:assert/strict";
import { test } from "node:test";
import { parsed } from "../../../src/table/query/filter_text.js";
import { globPattern } from "../../../src/table/query/glob.js";

/** @param {string} text */
const text = (text) => {
  const { column: _, ...rest } = /** @type {any} */ (parsed("op", "text", text));
  return rest;
};
/** @param {any} kind @param {string} filter */
const number = (kind, filter) => {
  const found = /** @type {any} */ (parsed("n", kind, filter));
  return found.all ? found.all.map((/** @type {any} */ one) => [one.op, one.value]) : [found.not ? `not ${found.op}` : found.op, found.value];
};

test("blanks ask for nothing", () => {
  assert.deepEqual([parsed("op", "text", " "), parsed("n", "time", "")], [null, null]);
});

test("texts are contained, whole, missing, or turned around", () => {
  assert.deepEqual(text(" MM "), { op: "contains", value: "MM" });
  assert.deepEqual(text("= torch.mm"), { op: "equals", value: "torch.mm" });
  assert.deepEqual([text("null"), text("!NULL")], [{ op: "null" }, { op: "null", not: true }]);
  assert.deepEqual([text("!aten"), text("!!aten")], [{ op: "contains", value: "aten", not: true }, { op: "contains", value: "aten" }]);
  assert.deepEqual(text("!=a"), { op: "equals", value: "a", not: true });
});

test("regular expressions are JavaScript's, and may be in any case", () => {
  assert.deepEqual(text("re:^a\\.(?!b)"), { op: "regex", value: "^a\\.(?!b)" });
  assert.deepEqual(text("re:(?i)ATEN"), { op: "regex", value: "ATEN", ignore_case: true });
  for (const bad of ["re:(", "re:[", "re:\\q", "re:a**", "!re:{"]) {
    assert.throws(() => text(bad), /^Error: '.*' is not a regular expression: .+; correct it or leave 're:' out\.$/, bad);
  }
});

test("globs are regular expressions in any case that fit up to the end", () => {
  assert.deepEqual(text("a*M?"), { op: "regex", value: "a[\\s\\S]*M[\\s\\S]$", ignore_case: true });
  const fits = (/** @type {string} */ glob, /** @type {string} */ name) => new RegExp(globPattern(glob), "iu").test(name);
  assert.deepEqual([fits("a*M?", "xATEN.mm"), fits("a*m?", "aten.mm.x"), fits("[!a-c]*", "d"), fits("x[!a-c]*", "xb")], [true, false, true, false]);
  assert.deepEqual([fits("*[]]*", "a]b"), fits("*[", "a["), fits("*[*]*x", "a*bx"), fits("*.*.*", "a\n.b.")], [true, true, true, true]);
  assert.deepEqual([fits("a+(b)*", "a+(b)c"), fits("*.m?.*", "atenxmm.x"), fits("**", "")], [true, false, true]);
  assert.throws(() => text("*[z-a]"), /is not a pattern/);
});

test("numbers are compared, in a range, or missing", () => {
  assert.deepEqual([number("metric", ">1.5"), number("metric", "<= 3"), number("metric", "5"), number("metric", "=5"), number("metric", "!=5")], [
    ["above", 1.5], ["at_most", 3], ["equals", 5], ["equals", 5], ["not equals", 5],
  ]);
  assert.deepEqual(number("metric", "-.5..1e-7"), [["at_least", -0.5], ["at_most", 1e-7]]);
  assert.deepEqual([number("time", "null")[0], number("time", "!null")[0]], ["null", "not null"]);
});

test("units are those of the column", () => {
  assert.deepEqual([number("time", ">1ms"), number("time", "2 µs"), number("time", "2μs"), number("time", "<1S")], [["above", 1e3], ["equals", 2], ["equals", 2], ["below", 1e6]]);
  assert.deepEqual([number("bytes", ">1MiB"), number("bytes", "2kb"), number("bytes", "3k"), number("bytes", "7b")], [["above", 2 ** 20], ["equals", 2e3], ["equals", 3e3], ["equals", 7]]);
  assert.deepEqual([number("flops", ">=2k"), number("whole", "1 g")], [["at_least", 2e3], ["equals", 1e9]]);
  assert.deepEqual(number("time", "0.001ms..1s"), [["at_least", 1], ["at_most", 1e6]]);
});

test("what is no number is said, with the units of the column", () => {
  for (const bad of [">", "fast", "1..", "5kg", "2k", "NaN", "1e"]) {
    assert.throws(() => number("time", bad), /' is not a number; write >5, <=2, 3\.\.8 or null, with a unit of us, µs, ms, s\.$/, bad);
  }
});
