// The rows that a table lists as text: copied with tabs between the cells, or saved as a CSV file.

import { copyText } from "../../shared/copy.js";
import { h } from "../../shared/dom.js";

/** What stands in a row before its cells: its number and how deep it is nested. */
const FIRST_CELL = 2;
/** Rows asked for at once. */
const PAGE = 5_000;
/** Rows up to which they are copied: more are for a file. */
export const MOST_COPIED = 20_000;

/**
 * Fetches the cells of all rows of a listing as they are: times in microseconds, sizes in bytes.
 * @param {(offset: number, limit: number) => Promise<any>} fetchPage @param {(done: number, all: number) => void} onProgress
 * @returns {Promise<{names: string[], rows: any[][]} | null>} null where an answer does not come
 */
export async function allRows(fetchPage, onProgress) {
  /** @type {any[][]} */
  const rows = [];
  for (;;) {
    const answer = await fetchPage(rows.length, PAGE);
    if (!answer) return null;
    for (const row of answer.rows) rows.push(row.slice(FIRST_CELL));
    onProgress(rows.length, answer.listed);
    if (rows.length >= answer.listed || !answer.rows.length) return { names: answer.columns, rows };
  }
}

/** Writes rows as lines of cells. @param {{names: string[], rows: any[][]}} table @param {string} separator */
export function written({ names, rows }, separator) {
  const line = (/** @type {any[]} */ cells) => cells.map((cell) => quoted(cell ?? "", separator)).join(separator);
  return `${[names, ...rows].map(line).join("\n")}\n`;
}

/** @param {any} cell @param {string} separator */
function quoted(cell, separator) {
  const text = String(cell);
  return /["\n\r]/.test(text) || text.includes(separator) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Copies text; tells whether it is in the clipboard now. @param {string} text @param {HTMLElement} root */
export async function copied(text, root) {
  const area = h("textarea", { class: "nb-sr", "aria-hidden": "true", tabindex: "-1" });
  area.value = text;
  root.append(area);
  const isCopied = await copyText(text, area);
  area.remove();
  return isCopied;
}

/** Saves text as a file. @param {string} text @param {string} name */
export function save(text, name) {
  const url = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
  const link = h("a", { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
