// The frame table of the flame graph: names with calls and times, sortable; a name selects its largest frame.

import { sorted, statusText } from "./lines.js";
import { change, duration, share } from "../../shared/units.js";
import { h } from "../../shared/dom.js";

/** Rows drawn at most. */
const MOST = 300;

/**
 * @typedef {{name: string, label: string, text: (line: any, names: string[], whole: number, difference: any) => string, isNumber: boolean}} Column
 */

/** @type {Column[]} */
const COLUMNS = [
  { name: "name", label: "frame", text: (line, names) => names[line.name], isNumber: false },
  { name: "count", label: "calls", text: (line) => line.count.toLocaleString("en"), isNumber: true },
  { name: "self", label: "self time", text: (line) => duration(line.self), isNumber: true },
  { name: "total", label: "total time", text: (line) => duration(line.total), isNumber: true },
  { name: "share", label: "share of total", text: (line, _, whole) => (whole > 0 ? share(line.total / whole) : ""), isNumber: true },
];
/** @type {Column[]} */
const COMPARED = [
  { name: "before", label: "self before", text: (line) => (line.countBefore ? duration(line.selfBefore) : "—"), isNumber: true },
  { name: "change", label: "change of self", text: (line) => change(line.self - line.selfBefore), isNumber: true },
  { name: "status", label: "what changed", text: (line, _, __, difference) => statusText(line, difference), isNumber: false },
];

export class FrameTable {
  /** @param {{onChoose: (frame: number) => void}} options */
  constructor({ onChoose }) {
    this.onChoose = onChoose;
    this.sort = { column: "self", isDescending: true };
    this.caption = h("caption", {});
    this.head = h("tr", {});
    this.body = h("tbody", {});
    this.element = h("div", { class: "nb-flame-table", hidden: true, tabindex: "0", role: "region", "aria-label": "Frames as a table" },
      h("table", {}, this.caption, h("thead", {}, this.head), this.body));
  }

  /** @param {{lines: any[], names: string[], whole: number, about: string, difference: any}} data `difference` is null without a base */
  show(data) {
    // A comparison starts with what changed most.
    if (data.difference && !this.data) this.sort = { column: "status", isDescending: true };
    this.data = data;
    if (!data.difference && ["before", "change", "status"].includes(this.sort.column)) this.sort = { column: "self", isDescending: true };
    this.draw();
  }

  draw() {
    const { lines, names, about, difference } = /** @type {any} */ (this.data);
    const columns = difference ? [...COLUMNS, ...COMPARED] : COLUMNS;
    const shown = sorted(lines, names, this.sort).slice(0, MOST);
    const count = lines.length > MOST ? `${MOST} of ${lines.length.toLocaleString("en")} names, first by ${this.labelOf(columns)}` : `${lines.length} name${lines.length === 1 ? "" : "s"}`;
    this.caption.textContent = `${about}: ${count}`;
    this.head.replaceChildren(...columns.map((column) => this.header(column)));
    this.body.replaceChildren(...shown.map((line) => this.row(line, columns)));
  }

  /** @param {Column[]} columns */
  labelOf(columns) {
    return columns.find(({ name }) => name === this.sort.column)?.label;
  }

  /** @param {Column} column */
  header({ name, label, isNumber }) {
    // The share says what the total sorts by.
    const by = { share: "total" }[name] ?? name;
    const isSorted = this.sort.column === by && by === name;
    const sort = isSorted ? (this.sort.isDescending ? "descending" : "ascending") : "none";
    const button = h("button", { type: "button", "data-name": name, onclick: () => this.sortBy(by, name !== "name") }, label, h("span", { class: "nb-sort-mark", "aria-hidden": "true" }));
    return h("th", { scope: "col", "aria-sort": sort, class: isNumber ? "nb-number" : null }, button);
  }

  /** @param {string} column @param {boolean} isLargestFirst */
  sortBy(column, isLargestFirst) {
    this.sort = { column, isDescending: this.sort.column === column ? !this.sort.isDescending : isLargestFirst };
    const focused = /** @type {any} */ (document.activeElement)?.dataset?.name;
    this.draw();
    this.head.querySelector(`[data-name="${focused}"]`)?.focus();
  }

  /** @param {any} line @param {Column[]} columns */
  row(line, columns) {
    const { names, whole, difference } = /** @type {any} */ (this.data);
    const [first, ...rest] = columns.map((column) => column.text(line, names, whole, difference));
    const link = h("button", { type: "button", class: "nb-link", title: first, onclick: () => this.onChoose(line.largest) }, first);
    return h("tr", {}, h("th", { scope: "row" }, link), ...rest.map((text, index) => h("td", { class: columns[index + 1].isNumber ? "nb-number" : null }, text)));
  }
}
