// The detail pane of a difference: its figures, plots, worst elements, and the script that runs the op alone.

import { copyText } from "../shared/copy.js";
import { dataTable, fields } from "../table/detail_pane.js";
import { h } from "../shared/dom.js";
import { shown } from "../shared/names.js";
import { diffColumnsOf } from "../table/columns.js";
import { cellText } from "../table/cells.js";
import { Plots } from "./plots.js";

const TEXT = 2000;

export class DiffDetail {
  /**
   * @param {{label: string, looks?: Record<string, any>, ask: (topic: string, message: object) => Promise<any>, onClose: () => void, onClear: () => void}} options
   */
  constructor(options) {
    this.options = options;
    this.plots = new Plots();
    this.element = h("section", { class: "nb-detail", "aria-label": options.label, hidden: true });
  }

  hide() {
    this.plots.clear();
    this.element.hidden = true;
    this.element.replaceChildren();
  }

  /** @param {any} detail the kernel's answer @param {boolean} hasFocus whether the focus should move here */
  show(detail, hasFocus) {
    const close = h("button", { type: "button", class: "nb-close", "aria-label": "Close details", onclick: this.options.onClose }, "×");
    const title = h("h3", { tabindex: "-1" }, h("span", { class: "nb-muted" }, `#${detail.op_id} `), shown(detail.op, TEXT));
    this.hidden = h("p", { class: "nb-hidden-note", hidden: true }, "This row is hidden by the filters. ",
      h("button", { type: "button", onclick: this.options.onClear }, "Clear filters"));
    const { worst } = detail;
    const parts = [
      h("div", { class: "nb-detail-head" }, title, close),
      this.hidden, fields(detail.fields.map((/** @type {[string, any]} */ field) => fieldText(field, this.options.looks))),
      detail.why_not === null ? null : h("p", { class: "nb-why-not" }, detail.why_not),
      detail.why_not === null ? this.script(detail.row) : null,
      this.plots.element,
      worst === null ? null : dataTable({ label: "Worst elements", ...worst, numbers: new Set(worst.numbers ?? worst.columns.slice(1)) }),
    ];
    this.element.replaceChildren(...parts.filter((part) => part !== null));
    this.element.hidden = false;
    this.plots.show(detail.plots);
    if (hasFocus) title.focus({ preventScroll: true });
  }

  /** Makes the button that copies the script, and the area that then shows it. @param {number} row */
  script(row) {
    const area = h("textarea", { class: "nb-script", readonly: true, rows: 8, spellcheck: "false", "aria-label": "Script that runs the op alone", hidden: true });
    const message = h("span", { class: "nb-muted", role: "status" });
    const copy = async () => {
      const answer = await this.options.ask("script", { kind: "script", row });
      if (!answer) return;
      area.value = answer.script;
      area.hidden = false;
      const isCopied = await copyText(answer.script, area);
      message.textContent = [isCopied ? "Copied." : "Press Ctrl+C to copy the selected text.", answer.note].filter(Boolean).join(" ");
    };
    return h("div", { class: "nb-copy" },
      h("button", { type: "button", title: "A Python script with the inputs of this call: runs the op on its device and on the CPU in float64", onclick: copy }, "Copy script that runs this op alone"),
      message, area);
  }

  /** @param {boolean} isHidden whether the row is not among the matches */
  showHidden(isHidden) {
    if (this.hidden) this.hidden.hidden = !isHidden;
  }

  destroy() {
    this.plots.clear();
  }
}

/** Returns the label and text of a field. @param {[string, any]} field @param {Record<string, any>} [looks] @returns {[string, string | null]} */
function fieldText([name, value], looks) {
  const [{ kind, label }] = diffColumnsOf([name], new Set(typeof value === "number" ? [name] : []), looks);
  return [looks?.[name] ? label : name.replaceAll("_", " "), cellText(name, kind, value, TEXT)];
}
