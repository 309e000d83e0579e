import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { answerer } from "../../src/report/answers/answers.js";
import { profiles } from "../../src/report/execute/profile.js";

/** What the kernel's executor is tested with, too: tests/analysis/query/test_predicates.py. */
const CASES = JSON.parse(readFileSync(new URL("../../../tests/analysis/query/cases.json", import.meta.url), "utf8"));

/** @param {(string | null)[]} cells */
function textColumn(cells) {
  const values = [...new Set(cells.filter((cell) => cell !== null))];
  return { values, codes: Int32Array.from(cells, (cell) => values.indexOf(cell)) };
}

/** @param {Record<string, any>} record @param {(value: any) => any} change */
const mapped = (record, change) => Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value)]));
const columns = /** @type {any} */ ({
  count: CASES.texts.op.length,
  texts: mapped(CASES.texts, textColumn),
  numbers: mapped(CASES.numbers, (cells) => Float64Array.from(cells, (/** @type {any} */ cell) => (cell === null ? NaN : Number(cell)))),
});
/** @type {number[] | null} */
let limit = null;
const answer = answerer({
  noun: "row", key: "row", bar: "size_bytes", columns, shown: ["op", "self_time_us"], modules: {}, amounts: columns.numbers.size_bytes,
  within: () => limit, kinds: { detail: (row) => ({ row }) },
});
/** @param {object} query */
const rowsOf = (query) => answer({ kind: "rows", query }).rows.map((/** @type {any[]} */ [row]) => row);

for (const { name, predicates, sort, rows } of CASES.queries) {
  test(`rows of a query: ${name}`, () => assert.deepEqual(rowsOf({ predicates, sort }), rows));
}

for (const { column, rows, profile } of CASES.profiles) {
  test(`profile of ${column} over rows ${rows}`, () => assert.deepEqual(profiles(columns, Int32Array.from(rows), [column]), { [column]: profile }));
}

test("a large table is profiled by an even sample", () => {
  const numbers = { n: Float64Array.from({ length: 200_000 }, (_, row) => row) };
  const { n } = /** @type {any} */ (profiles({ count: 200_000, texts: {}, numbers }, Int32Array.from(numbers.n), ["n"]));
  assert.deepEqual([n.count, n.low, n.high, [...new Set(n.bins)]], [50_000, 0, 199_996, [3125]]);
});

test("pages carry raw cells, what the rows add up to, and the largest value for the bars", () => {
  const { rows, ...page } = answer({ kind: "rows", id: "view-1", query: { sort: [{ column: "self_time_us", descending: true }] }, offset: 1, limit: 2 });
  assert.deepEqual(page, { kind: "rows", id: "view-1", matched: 8, listed: 8, groups: null, amount: 2031, columns: ["op", "self_time_us"], errors: {}, offset: 1, largest: 1024 });
  assert.deepEqual(rows, [[2, 0, "torch.matmul", 2000], [1, 0, "aten.addmm.default", 5]]);
});

test("a limit holds in every query, also in one asked before", () => {
  limit = [7, 0];
  assert.deepEqual([rowsOf({}), answer({ kind: "position", row: 7, query: {} }), answer({ kind: "position", row: 1, query: {} }).position], [
    [0, 7], { kind: "position", id: undefined, row: 7, position: 1, closed: null }, null,
  ]);
  limit = null;
  assert.equal(rowsOf({}).length, 8);
});

test("a question that cannot be answered gets an error", () => {
  assert.match(answer({ kind: "rows", query: { sort: [{ column: "speed" }] } }).message, /The table has no column 'speed'; known are module, op, /);
  assert.match(answer({ kind: "detail", row: 8 }).message, /There is no row 8; the last one is 7\./);
  assert.equal(answer({ kind: "dance" }).kind, "error");
});
