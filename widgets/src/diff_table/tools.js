// The tool line of the diff table: search with its count, choices, sliders, the switch of the module pane, clearing.

import { withValue } from "./query.js";
import { debounced, h } from "../shared/dom.js";
import { select } from "../table/tools.js";
import { Sliders } from "./sliders.js";

const PAUSE = 60;

export class DiffTools {
  /**
   * @param {{choices: Record<string, string[]>, labels: Record<string, string>, scales: any[], search: string, first: {row: number, label: string, title: string} | null, query: () => any,
   *   onChange: (change: object) => void, onToggleTree: () => void, onClear: () => void, onGo: (row: number) => void}} options `first` is the row that a button leads to
   */
  constructor({ choices, labels, scales, search, first, query, onChange, onToggleTree, onClear, onGo }) {
    this.typed = debounced(() => onChange({ search: this.search.value }), PAUSE);
    this.search = h("input", {
      type: "search", class: "nb-search", placeholder: search, "aria-label": search.replace(/, (?=[^,]*$)/, " and "),
      spellcheck: "false", autocomplete: "off", oninput: this.typed.later,
      onkeydown: (/** @type {KeyboardEvent} */ event) => event.key === "Enter" && this.typed.now(),
    });
    this.selects = Object.entries(choices).map(([name, values]) => ({
      name, element: select(labels[name], `all ${labels[name]}`, values, (value) => onChange({ choices: withValue(query().choices, name, value) })),
    }));
    this.sliders = new Sliders({ scales, onChange: (name, least) => onChange({ thresholds: withValue(query().thresholds, name, least) }) });
    this.treeButton = h("button", { type: "button", "aria-expanded": "false", onclick: onToggleTree }, "Modules");
    this.clearButton = h("button", { type: "button", onclick: onClear, hidden: true }, "Clear filters");
    const goButton = first && h("button", { type: "button", class: "nb-first", title: first.title, onclick: () => onGo(first.row) }, first.label);
    this.count = h("span", { class: "nb-count" });
    this.element = h("div", { class: "nb-tools", role: "search", "aria-label": "Filter the differences" },
      this.treeButton, ...(goButton ? [goButton] : []), this.search, ...this.selects.map(({ element }) => element), this.clearButton, this.count, this.sliders.element);
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

  /** @param {boolean} isWide */
  place(isWide) {
    this.sliders.element.open = isWide;
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
