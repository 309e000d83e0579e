// The tool line of the diff table: search with its count, choices, sliders, the switch of the module pane, clearing.

import { withValue } from "./query.js";
import { debounced, h } from "../shared/dom.js";
import { select } from "../table/tools.js";
import { Sliders } from "./sliders.js";

const PAUSE = 60;

export class DiffTools {
  /**
   * @param {{choices: Record<string, string[]>, labels: Record<string, string>, scales: any[], query: () => any,
   *   onChange: (change: object) => void, onToggleTree: () => void, onClear: () => void}} options
   */
  constructor({ choices, labels, scales, query, onChange, onToggleTree, onClear }) {
    this.typed = debounced(() => onChange({ search: this.search.value }), PAUSE);
    this.search = h("input", {
      type: "search", class: "nb-search", placeholder: "Search op, module, source", "aria-label": "Search op, module and source",
      spellcheck: "false", autocomplete: "off", oninput: this.typed.later,
      onkeydown: (/** @type {KeyboardEvent} */ event) => event.key === "Enter" && this.typed.now(),
    });
    this.selects = Object.entries(choices).map(([name, values]) => ({
      name, element: select(labels[name], `all ${labels[name]}`, values, (value) => onChange({ choices: withValue(query().choices, name, value) })),
    }));
    this.sliders = new Sliders({ scales, onChange: (name, least) => onChange({ thresholds: withValue(query().thresholds, name, least) }) });
    this.treeButton = h("button", { type: "button", "aria-expanded": "false", onclick: onToggleTree }, "Modules");
    this.clearButton = h("button", { type: "button", onclick: onClear, hidden: true }, "Clear filters");
    this.count = h("span", { class: "nb-count" });
    this.element = h("div", { class: "nb-tools", role: "search", "aria-label": "Filter the differences" },
      this.treeButton, this.search, ...this.selects.map(({ element }) => element), this.clearButton, this.count, this.sliders.element);
  }

  /** @param {import("./query.js").DiffState} query @param {boolean} isFiltered */
  show(query, isFiltered) {
    if (this.search.value !== query.search) this.search.value = query.search;
    for (const { name, element } of this.selects) {
      if (element.value !== (query.choices[name] ?? "")) element.value = query.choices[name] ?? "";
    }
    this.sliders.show(query.thresholds);
    this.clearButton.hidden = !isFiltered;
  }

  /** @param {boolean} isOpen */
  showTree(isOpen) {
    this.treeButton.setAttribute("aria-expanded", String(isOpen));
  }

  destroy() {
    this.typed.cancel();
    this.sliders.destroy();
  }
}
