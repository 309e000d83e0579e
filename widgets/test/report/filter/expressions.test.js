import assert from "node:assert/strict";
import { test } from "node:test";
import { expression } from "../../../src/report/filter/expressions.js";
import { globExpression } from "../../../src/report/filter/globs.js";

/** Pattern, a text that fits, one that does not; as in Python. @type {[string, string, string][]} */
const EXPRESSIONS = [
  ["^aten\\.(?P<name>mm)(?P=name)?$", "aten.mm\n", "aten.mm2"],
  ["(?i)ATEN", "aten", "at"],
  ["(?s)a.b", "a\nb", "ab"],
  ["(?m)^b$", "a\nb", "ab"],
  ["a.b", "a\rb", "a\nb"],
  ["\\d+\\Z", "x٣", "3x"],
  ["\\bmäß\\b", "ein mäß", "mäßig"],
  ["[]x]", "]", "a"],
  ["a{,2}b{2}\\{c{}", "bb{c{}", "b{c{}"],
  ["\\-\\_\\ \\/", "-_ /", "-"],
  ["\\x41\\u00e9\\U0001f600", "Aé😀", "A"],
];

test("expressions mean what they mean in Python", () => {
  for (const [pattern, fits, not] of EXPRESSIONS) {
    assert.deepEqual([expression(pattern).test(fits), expression(pattern).test(not)], [true, false], pattern);
  }
});

test("what is no expression, or one that only Python knows, is said", () => {
  for (const pattern of ["(", "[", "\\q", "a**", "*", "\\", "(?x)a", "(?>a)", "[\\W]", "a)", "(?(1)a|b)"]) {
    assert.throws(() => expression(pattern), /^PatternError: '.*' is not a regular expression: .+; mend it or leave 're:' out\.$/, pattern);
  }
  assert.throws(() => expression("(?>a)"), /groups that begin with \(\?> work in the notebook only/);
});

test("globs are taken in any case and only have to fit up to the end", () => {
  const fits = (/** @type {string} */ glob, /** @type {string} */ text) => globExpression(glob).test(text);
  assert.deepEqual([fits("a*M?", "xATEN.mm"), fits("a*m?", "aten.mm.x"), fits("[!a-c]*", "d"), fits("x[!a-c]*", "xb")], [true, false, true, false]);
  assert.deepEqual([fits("*[]]*", "a]b"), fits("*[", "a["), fits("[z-a]*", "z"), fits("*[*]*x", "a*bx"), fits("*.*.*", "a\n.b.")], [true, true, false, true, true]);
});

test("a glob of many stars does not take for ever", () => {
  assert.equal(globExpression(`${"*a".repeat(40)}*b`).test("a".repeat(3000)), false);
});
