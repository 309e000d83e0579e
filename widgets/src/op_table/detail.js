// The detail pane of the selected op: its values, tensors, and links to the ops around it.

import { h } from "../shared/dom.js";
import { shown } from "../shared/names.js";
import { general } from "../shared/numbers.js";
import { duration } from "../shared/units.js";
import { cellText } from "../table/cells.js";
import { dataTable, fields } from "../table/detail_pane.js";

const NAME = 2000;
const TEXT = 500;
/** Label, column and kind of each field. @type {[string, string, import("../table/query/filter_text.js").Kind][]} */
const FIELDS = [
  ["module", "module", "text"], ["model", "model", "text"], ["class", "class", "text"], ["call of the module", "module_call", "whole"],
  ["level", "level", "text"], ["phase", "phase", "text"], ["step", "step", "whole"],
  ["self time", "self_time_us", "time"], ["share of the step", "self_fraction", "share"],
  ["IQR of the runs", "iqr_us", "time"], ["min of the runs", "min_us", "time"], ["slow runs", "slow_runs", "text"], ["total time", "total_time_us", "time"], ["start", "start_us", "time"],
  ["self device time", "self_device_time_us", "time"], ["total device time", "total_device_time_us", "time"],
  ["FLOPs", "flops", "flops"], ["bytes moved", "size_bytes", "bytes"], ["process group", "group", "text"], ["input shapes", "input_shapes", "text"],
  ["device", "device", "text"], ["stream", "stream", "whole"], ["thread", "thread", "whole"], ["your line", "own_source", "text"], ["source", "source", "text"], ["line", "source_text", "text"],
];
/** Times that every op has: a dash where they are not known. */
const ALWAYS = new Set(["self_time_us", "total_time_us", "start_us"]);
const LINKS = Object.entries({
  called_by: "Called by", calls: "Calls", producers: "Inputs come from", consumers: "Outputs go to", forward: "Gradient of", backward: "Gradient computed by",
});
/** Title of each column of tensors. @type {Record<string, string>} */
const TITLES = { op_id: "op", size_bytes: "size", requires_grad: "grad", tensor_id: "tensor", nan_count: "NaN", inf_count: "Inf" };
const STATISTICS = ["mean", "std", "min", "max", "norm"];
const WHOLE = ["op_id", "tensor_id", "nan_count", "inf_count"];
const NUMBERS = new Set(["op", "size", "tensor", "NaN", "Inf", ...STATISTICS]);

export class OpDetail {
  /** @param {{onGo: (opId: number) => void, onClose: () => void, onClear: () => void}} options */
  constructor(options) {
    this.options = options;
    this.element = h("section", { class: "nb-detail", "aria-label": "Selected op", hidden: true });
  }

  hide() {
    this.element.hidden = true;
    this.element.replaceChildren();
  }

  /** @param {any} detail the raw answer @param {boolean} hasFocus whether the focus should move here */
  show(detail, hasFocus) {
    const close = h("button", { type: "button", class: "nb-close", "aria-label": "Close details", onclick: this.options.onClose }, "×");
    this.title = h("h3", { tabindex: "-1" }, h("span", { class: "nb-muted" }, `#${detail.op_id} `), shown(detail.op, NAME));
    this.hidden = h("p", { class: "nb-hidden-note", hidden: true }, "This op is hidden by the filters. ",
      h("button", { type: "button", onclick: this.options.onClear }, "Clear filters"));
    this.element.replaceChildren(
      h("div", { class: "nb-detail-head" }, this.title, close),
      this.hidden, fields(fieldTexts(detail)), this.links(detail.links), tensors(detail.tensors),
    );
    this.element.hidden = false;
    if (hasFocus) this.title.focus({ preventScroll: true });
  }

  /** @param {boolean} isHidden whether the op is not among the matches */
  showHidden(isHidden) {
    if (this.hidden) this.hidden.hidden = !isHidden;
  }

  /** @param {Record<string, {links: [number, string][], total: number}>} lists */
  links(lists) {
    const parts = LINKS.filter(([name]) => lists[name].total > 0).map(([name, title]) => {
      const { links, total } = lists[name];
      return h("div", { class: "nb-link-list" }, h("h4", {}, title),
        h("ul", {}, ...links.map((link) => h("li", {}, this.link(link)))),
        total > links.length ? h("p", { class: "nb-muted" }, `and ${(total - links.length).toLocaleString("en")} more`) : null);
    });
    return h("div", { class: "nb-links" }, ...parts);
  }

  /** @param {[number, string]} link */
  link([opId, name]) {
    return h("button", { type: "button", class: "nb-link", title: shown(name), onclick: () => this.options.onGo(opId) },
      h("span", { class: "nb-muted" }, `#${opId}`), ` ${shown(name)}`);
  }
}

/** @param {any} detail @returns {[string, string | null][]} */
function fieldTexts({ fields: values, class: type, source_text: sourceText, left_out: leftOut }) {
  const all = { ...values, class: type, source_text: sourceText };
  if (all.own_source === all.source) all.own_source = null;
  const known = FIELDS.map(([label, column, kind]) => [label, cellText(column, kind, all[column], TEXT) ?? (ALWAYS.has(column) ? duration(NaN) : null)]);
  return /** @type {[string, string | null][]} */ (leftOut ? [...known, ["statistics", leftOut]] : known);
}

/** @param {{columns: string[], rows: any[][], total: number}} table */
function tensors({ columns, rows, total }) {
  if (!rows.length) return h("p", { class: "nb-muted" }, "No tensors were recorded for this op.");
  const caption = total > rows.length ? `Tensors, the first ${rows.length} of ${total.toLocaleString("en")}` : "Tensors";
  const texts = rows.map((row) => row.map((cell, index) => tensorText(columns[index], cell)));
  return dataTable({ caption, label: "Tensors of the op", columns: columns.map((name) => TITLES[name] ?? name), rows: texts, numbers: NUMBERS });
}

/** @param {string} name @param {any} cell */
function tensorText(name, cell) {
  if (name === "requires_grad") return cell ? "yes" : "no";
  if (STATISTICS.includes(name)) return cell === null ? null : general(Number(cell), 4);
  return cellText(name, name === "size_bytes" ? "bytes" : WHOLE.includes(name) ? "whole" : "text", cell, TEXT);
}
