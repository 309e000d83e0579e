// The columns of a diff table out of a report's data: the place of each row from the worst on, and its bar.

import { range } from "../../flamegraph/data/data.js";
import { roundedTo } from "../../shared/numbers.js";
import { byRank, numberRanks } from "./order.js";

/** The columns with `rank`, whether each row is wrong, and the length of its bar. @param {any} data as unpacked */
export function diffColumns({ count, texts, numbers, statuses, harmless }) {
  const worst = worstFirst(count, texts.status, numbers.noise_ratio, statuses, harmless);
  const rank = new Float64Array(count);
  worst.forEach((row, place) => (rank[row] = place));
  const isWrongOf = [...texts.status.values.map((/** @type {string} */ text) => !harmless.includes(text)), false];
  const isWrong = new Uint8Array(count);
  for (let row = 0; row < count; row += 1) isWrong[row] = Number(isWrongOf.at(texts.status.codes[row]));
  return { count, texts, numbers: { ...numbers, rank }, isWrong, bar: barOf(numbers.noise_ratio), worst };
}

/** Rows by verdict, then by noise ratio, largest first; ties keep their order. @param {number} count @param {import("./columns.js").TextColumn} status @param {Float64Array} noise @param {string[]} statuses @param {string[]} harmless */
function worstFirst(count, status, noise, statuses, harmless) {
  // The last one is what code -1 points at. A verdict that is not known is looked at before those that are right.
  const other = 2 * statuses.indexOf(harmless[0]) - 1;
  const verdictOf = [...status.values.map((text) => (statuses.includes(text) ? 2 * statuses.indexOf(text) : other)), other];
  const verdicts = new Float64Array(count);
  for (let row = 0; row < count; row += 1) verdicts[row] = /** @type {number} */ (verdictOf.at(status.codes[row]));
  return byRank(byRank(range(count), numberRanks(noise), true), verdicts, false);
}

/** From a row to the length of its bar, 0 to 1: the logarithm of its noise ratio, from 1 to the largest. @param {Float64Array} noise @returns {(row: number) => number} */
function barOf(noise) {
  let largest = 10;
  for (const ratio of noise) if (ratio > largest && ratio < Infinity) largest = ratio;
  return (row) => roundedTo(Math.max(0, Math.min(Math.log10(noise[row]) / Math.log10(largest), 1)) || 0, 4);
}
