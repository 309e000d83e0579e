// The details of the selected item: fields, attributes, and its tensors with links to the nodes at their other ends.

import { h } from "../../shared/dom.js";

const LONGEST = 600;

export class Detail {
  /** @param {{label: string, onGo: (node: number) => void, onClose: () => void}} options */
  constructor({ label, onGo, onClose }) {
    this.onGo = onGo;
    this.title = h("h3", { tabindex: "-1" });
    this.path = h("p", { class: "nb-muted nb-graph-path" });
    this.body = h("div", { class: "nb-graph-facts" });
    const close = h("button", { type: "button", class: "nb-close", "aria-label": "Close the details", title: "Close (Esc)", onclick: onClose }, "×");
    this.element = h("section", { class: "nb-detail", "aria-label": label, hidden: true },
      h("div", { class: "nb-detail-head" }, this.title, close), this.path, this.body);
  }

  /** @param {import("../model/describe.js").Details} details */
  show({ title, path, fields, attributes, lists }) {
    this.title.textContent = title;
    this.path.textContent = path ? `in ${path}` : "";
    this.body.replaceChildren(fieldList(fields), ...(attributes.length ? [h("h4", {}, "Attributes"), fieldList(attributes)] : []),
      h("div", { class: "nb-graph-tensors" }, ...lists.filter(({ total }) => total > 0).map((list) => this.list(list))));
    this.element.hidden = false;
  }

  hide() {
    this.element.hidden = true;
  }

  /** @param {import("../model/describe.js").Details["lists"][0]} list */
  list({ title, total, tensors }) {
    const rest = total - tensors.length;
    return h("div", {}, h("h4", {}, `${title} (${total.toLocaleString("en")})`), h("ul", {}, ...tensors.map((tensor) => this.tensor(tensor))),
      rest > 0 ? h("p", { class: "nb-muted" }, `and ${rest.toLocaleString("en")} more`) : null);
  }

  /** @param {import("../model/describe.js").Tensor} tensor */
  tensor({ slot, tensor, node, name }) {
    const end = node < 0 ? h("span", { class: "nb-muted" }, name) : h("button", { type: "button", class: "nb-link", title: name, onclick: () => this.onGo(node) }, name);
    return h("li", {}, slot ? h("span", { class: "nb-muted" }, slot) : null, end, h("span", { class: "nb-graph-tensor" }, tensor));
  }
}

/** @param {[string, string][]} list */
function fieldList(list) {
  return h("dl", { class: "nb-fields" }, ...list.map(([label, text]) =>
    h("div", {}, h("dt", {}, label), h("dd", { title: text.length > LONGEST ? text : null }, text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text))));
}
