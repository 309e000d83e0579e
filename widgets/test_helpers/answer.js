// Answers questions from a report's block of data, for the tests on Python's side: node answer.js < questions.
// Each line of stdin is {file, table: "op" | "diff" | "alignment", questions: [message, ...], state: {}}; each line of stdout their answers.

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { alignmentAnswers } from "../src/report/answers/alignment_answers.js";
import { diffAnswers } from "../src/report/answers/diff_answers.js";
import { opAnswers } from "../src/report/answers/op_answers.js";
import { unpack } from "../src/shared/unpack.js";

/** @type {Record<string, (state: any) => (message: any) => any>} */
const TABLES = { op: opAnswers, diff: diffAnswers, alignment: alignmentAnswers };

for await (const line of createInterface({ input: process.stdin })) {
  const { file, table, questions, state: more } = JSON.parse(line);
  const state = { ...(await unpack(readFileSync(file))), ...more };
  const answer = TABLES[table](state);
  // JSON has no infinite numbers; the kernel sends them as texts.
  const sent = (/** @type {string} */ _, /** @type {any} */ value) => (value === Infinity || value === -Infinity ? String(value) : value);
  process.stdout.write(`${JSON.stringify(questions.map(answer), sent)}\n`);
}
