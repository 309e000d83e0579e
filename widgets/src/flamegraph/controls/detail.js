// The pinned details of the selected frame.

import { button, h } from "../../shared/dom.js";

export class Detail {
  /** @param {{onClose: () => void, onSandwich: () => void}} options */
  constructor({ onClose, onSandwich }) {
    this.title = h("h3", {});
    this.fields = h("dl", { class: "nb-fields" });
    const close = h("button", { type: "button", class: "nb-close", "aria-label": "Close the details", title: "Close (Esc)", onclick: onClose }, "×");
    const sandwich = button("Callers, callees", "What calls this op, and what it calls (c)", onSandwich);
    this.element = h("section", { class: "nb-detail", "aria-label": "Selected frame", hidden: true },
      h("div", { class: "nb-detail-head" }, this.title, sandwich, close), this.fields);
  }

  /** @param {string} name @param {[string, string][]} facts */
  show(name, facts) {
    this.title.textContent = name;
    this.fields.replaceChildren(...facts.map(([label, text]) => h("div", {}, h("dt", {}, label), h("dd", {}, text))));
    this.element.hidden = false;
  }

  hide() {
    this.element.hidden = true;
  }
}
