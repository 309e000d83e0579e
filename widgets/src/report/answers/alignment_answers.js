// The alignment table's questions answered in an exported page.

import { textAt } from "../columns/columns.js";
import { answerer, cell } from "./answers.js";
import { shown } from "../../shared/names.js";
import { general } from "../../shared/numbers.js";

const SIDES = ["left", "right"];
const DIGITS = 6;
const NAME = 2001;

/** Returns a function that answers questions. @param {any} state of unpack() */
export function alignmentAnswers(state) {
  const { count, texts, numbers, overview: { harmless } } = state;
  const isWrong = texts.status.values.map((/** @type {string} */ text) => Number(!harmless.includes(text)));
  return answerer({
    noun: "row", key: "row", bar: "output_error", columns: { count, texts, numbers }, shown: state.columns, modules: state.modules,
    amounts: Float64Array.from(texts.status.codes, (code) => isWrong[code] ?? 0), within: () => null, kinds: { detail: (row) => alignmentDetail(state, row) },
  });
}

/** Returns the detail of a row as nbkit/views/alignment/detail.py has it. @param {any} state @param {number} row */
export function alignmentDetail(state, row) {
  const { detail, texts } = state;
  const verdict = textAt(texts.status, row) ?? "";
  return {
    row,
    op_id: row,
    op: [...new Set(SIDES.map((side) => placeOf(state, row, side)))].join(" ↔ "),
    fields: [["verdict", verdict], ...detail.fields.map((/** @type {string} */ name) => [name, cell(state, name, row)])],
    why_not: [detail.meanings[verdict], sentence(cell(state, "message", row))].filter(Boolean).join(" "),
    plots: [],
    worst: {
      caption: "Both sides", label: "Facts of both sides", columns: ["fact", ...detail.sides], numbers: [],
      rows: detail.facts.map((/** @type {string} */ name) => [name.replaceAll("_", " "), ...SIDES.map((side) => fact(state, name, state.numbers[`${side}_id`][row]))])
        .filter((/** @type {any[]} */ [, ...both]) => both.some((text) => text !== null)),
    },
  };
}

/** Returns a message as a sentence. @param {any} message */
function sentence(message) {
  const text = message === null ? "" : shown(String(message), NAME);
  return text && `${text[0].toUpperCase()}${text.slice(1).replace(/\.$/, "")}.`;
}

/** Names a result of one side. @param {any} state @param {number} row @param {string} side */
function placeOf(state, row, side) {
  const id = state.numbers[`${side}_id`][row];
  const prefix = side === "right" ? "right_" : "";
  if (Number.isNaN(id)) return "—";
  return shown(String(cell(state, `${prefix}name`, row) ?? cell(state, `${prefix}op`, row) ?? `result ${id}`));
}

/** Returns what is known of a result, as text. @param {any} state @param {string} name @param {number} id @returns {string | null} */
function fact({ results, detail }, name, id) {
  if (!(id >= 0 && id < results.count)) return null;
  if (name === "reads") return namesRead(results, id, detail.most_read);
  const value = cell(results, name, id);
  if (name === "is_output") return value ? "yes" : null;
  if (value === null) return null;
  return detail.figures.includes(name) ? general(Number(value), DIGITS) : shown(String(value), NAME);
}

/** Returns the names of the results that one reads. @param {any} results @param {number} id @param {number} most */
function namesRead(results, id, most) {
  const ids = JSON.parse(textAt(results.texts.reads, id) ?? "[]");
  const names = ids.slice(0, most).map((/** @type {number} */ one) => textAt(results.texts.name, one));
  const more = ids.length > most ? ` and ${ids.length - most} more` : "";
  return names.length ? `${names.join(", ")}${more}` : null;
}
