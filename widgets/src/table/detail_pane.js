// The detail pane of the selected op: fields, tensors, and links to the ops around it.

import { h, textOrNull } from "../shared/dom.js";

const NUMBERS = new Set(["op", "size", "tensor", "mean", "std", "min", "max", "norm", "NaN", "Inf"]);

export class DetailPane {
  /** @param {{id: string, onGo: (opId: number) => void, onClose: () => void, onClear: () => void}} options */
  constructor(options) {
    this.options = options;
    this.element = h("section", { class: "nb-detail", "aria-label": "Selected op", hidden: true });
  }

  hide() {
    this.element.hidden = true;
    this.element.replaceChildren();
  }

  /** @param {any} detail the kernel's answer @param {boolean} hasFocus whether the focus should move here */
  show(detail, hasFocus) {
    const close = h("button", { type: "button", class: "nb-close", "aria-label": "Close details", onclick: this.options.onClose }, "×");
    this.title = h("h3", { tabindex: "-1" }, h("span", { class: "nb-muted" }, `#${detail.op_id} `), detail.op);
    this.hidden = h("p", { class: "nb-hidden-note", hidden: true }, "This op is hidden by the filters. ",
      h("button", { type: "button", onclick: this.options.onClear }, "Clear filters"));
    this.element.replaceChildren(
      h("div", { class: "nb-detail-head" }, this.title, close),
      this.hidden, fields(detail.fields), this.links(detail.links), tensors(detail.tensors),
    );
    this.element.hidden = false;
    if (hasFocus) this.title.focus({ preventScroll: true });
  }

  /** @param {boolean} isHidden whether the op is not among the matches */
  showHidden(isHidden) {
    if (this.hidden) this.hidden.hidden = !isHidden;
  }

  /** @param {any[]} lists */
  links(lists) {
    const parts = lists.filter(({ total }) => total > 0).map(({ title, links, total }) =>
      h("div", { class: "nb-link-list" }, h("h4", {}, title),
        h("ul", {}, ...links.map((/** @type {[number, string]} */ link) => h("li", {}, this.link(link)))),
        total > links.length ? h("p", { class: "nb-muted" }, `and ${(total - links.length).toLocaleString("en")} more`) : null),
    );
    return h("div", { class: "nb-links" }, ...parts);
  }

  /** @param {[number, string]} link */
  link([opId, name]) {
    return h("button", { type: "button", class: "nb-link", title: name, onclick: () => this.options.onGo(opId) },
      h("span", { class: "nb-muted" }, `#${opId}`), ` ${name}`);
  }
}

/** Labels and texts; those without a text are left out. */
export function fields(/** @type {[string, string | null][]} */ list) {
  const parts = list.filter(([, text]) => text !== null);
  return h("dl", { class: "nb-fields" }, ...parts.map(([label, text]) => h("div", {}, h("dt", {}, label), h("dd", {}, textOrNull(text)))));
}

/** @param {{columns: string[], rows: (string | null)[][], total: number}} table */
function tensors({ columns, rows, total }) {
  if (!rows.length) return h("p", { class: "nb-muted" }, "No tensors were recorded for this op.");
  const caption = total > rows.length ? `Tensors, the first ${rows.length} of ${total.toLocaleString("en")}` : "Tensors";
  return dataTable({ caption, label: "Tensors of the op", columns, rows, numbers: NUMBERS });
}

/** A table that scrolls within itself. @param {{caption: string, label: string, columns: string[], rows: (string | null)[][], numbers: Set<string>}} table */
export function dataTable({ caption, label, columns, rows, numbers }) {
  const look = (/** @type {number} */ index) => (numbers.has(columns[index]) ? "nb-number" : null);
  const head = columns.map((name, index) => h("th", { scope: "col", class: look(index) }, name));
  const body = rows.map((row) => h("tr", {}, ...row.map((text, index) => h("td", { class: look(index) }, textOrNull(text)))));
  return h("div", { class: "nb-tensors", tabindex: "0", role: "region", "aria-label": label },
    h("table", {}, h("caption", {}, caption), h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...body)));
}
