// The columns of a diff table out of a report's data: the place of each row from the worst on, and its bar.

import { roundedTo } from "../lib/numbers.js";
import { textAt } from "./columns.js";
import { byRank, numberRanks } from "./order.js";

/** The columns with `rank`, whether each row is wrong, and its bar. @param {any} data as unpacked */
export function diffColumns({ count, texts, numbers, statuses, harmless }) {
  const worst = worstFirst(count, texts.status, numbers.noise_ratio, statuses, harmless);
  const rank = new Float64Array(count);
  worst.forEach((row, place) => (rank[row] = place));
  const isWrong = Uint8Array.from({ length: count }, (_, row) => Number(isKnownWrong(textAt(texts.status, row), harmless)));
  return { count, texts, numbers: { ...numbers, rank }, isWrong, bars: bars(numbers.noise_ratio), worst };
}

/** Rows by verdict, then by noise ratio, largest first; ties keep their order. @param {number} count @param {import("./columns.js").TextColumn} status @param {Float64Array} noise @param {string[]} statuses @param {string[]} harmless */
function worstFirst(count, status, noise, statuses, harmless) {
  // A verdict that is not known is looked at before those that are right.
  const other = 2 * statuses.indexOf(harmless[0]) - 1;
  const verdict = (/** @type {string | null} */ text) => (text !== null && statuses.includes(text) ? 2 * statuses.indexOf(text) : other);
  const ofCode = [...status.values.map(verdict), other];
  const verdicts = Float64Array.from(status.codes, (code) => ofCode.at(code) ?? other);
  const rows = Int32Array.from({ length: count }, (_, row) => row);
  return byRank(byRank(rows, numberRanks(noise), true), verdicts, false);
}

/** @param {string | null} status @param {string[]} harmless */
function isKnownWrong(status, harmless) {
  return status !== null && !harmless.includes(status);
}

/** Length of each row's bar, 0 to 1: the logarithm of its noise ratio, from 1 to the largest. @param {Float64Array} noise */
function bars(noise) {
  const largest = noise.reduce((most, ratio) => (Number.isFinite(ratio) && ratio > most ? ratio : most), 10);
  return noise.map((ratio) => roundedTo(Math.max(0, Math.min(Math.log10(ratio) / Math.max(Math.log10(largest), 1), 1)) || 0, 4));
}
