// What the detail panes of the tables share: fields, and a table of data.

import { h, textOrNull } from "../shared/dom.js";

/** Makes a list of labels and texts, without those that have no text. */
export function fields(/** @type {[string, string | null][]} */ list) {
  const parts = list.filter(([, text]) => text !== null);
  return h("dl", { class: "nb-fields" }, ...parts.map(([label, text]) => h("div", {}, h("dt", {}, label), h("dd", {}, textOrNull(text)))));
}

/** Makes a table that scrolls within itself. @param {{caption: string, label: string, columns: string[], rows: (string | null)[][], numbers: Set<string>}} table */
export function dataTable({ caption, label, columns, rows, numbers }) {
  const look = (/** @type {number} */ index) => (numbers.has(columns[index]) ? "nb-number" : null);
  const head = columns.map((name, index) => h("th", { scope: "col", class: look(index) }, name));
  const body = rows.map((row) => h("tr", {}, ...row.map((text, index) => h("td", { class: look(index) }, textOrNull(text)))));
  return h("div", { class: "nb-tensors", tabindex: "0", role: "region", "aria-label": label },
    h("table", {}, h("caption", {}, caption), h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...body)));
}
