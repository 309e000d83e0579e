// The tool line: search with its count, level and phase, the switch of the module pane, and clearing all filters.

import { debounced, h } from "../shared/dom.js";

const PAUSE = 60;

export class Tools {
  /**
   * @param {{levels: string[], phases: string[], onChange: (change: object) => void, onToggleTree: () => void,
   *   onClear: () => void, onShowAll: () => void}} options
   */
  constructor({ levels, phases, onChange, onToggleTree, onClear, onShowAll }) {
    const typed = debounced(() => onChange({ search: this.search.value }), PAUSE);
    this.typed = typed;
    this.search = h("input", {
      type: "search", class: "nb-search", placeholder: "Search op, module, source", "aria-label": "Search op, module and source",
      spellcheck: "false", autocomplete: "off", oninput: typed.later,
      onkeydown: (/** @type {KeyboardEvent} */ event) => event.key === "Enter" && typed.now(),
    });
    this.level = select("Level", "all levels", levels, (value) => onChange({ level: value }));
    this.phase = select("Phase", "all phases", phases, (value) => onChange({ phase: value }));
    this.treeButton = h("button", { type: "button", "aria-expanded": "false", onclick: onToggleTree }, "Modules");
    this.clearButton = h("button", { type: "button", onclick: onClear, hidden: true }, "Clear filters");
    this.withinText = h("bdi", { class: "nb-within-text" });
    this.withinButton = h("button", { type: "button", class: "nb-within", title: "Show all ops again", onclick: onShowAll, hidden: true },
      "in ", this.withinText, h("span", { "aria-hidden": "true" }, " ×"), h("span", { class: "nb-sr" }, ": show all ops again"));
    this.count = h("span", { class: "nb-count" });
    this.element = h(
      "div",
      { class: "nb-tools", role: "search", "aria-label": "Filter the ops" },
      this.treeButton, this.search, this.level, this.phase, this.withinButton, this.clearButton, this.count,
    );
  }

  /**
   * @param {import("../op_table/query.js").OpState} query
   * @param {boolean} isFiltered
   * @param {string | null} within what the rows are limited to from outside
   */
  show(query, isFiltered, within) {
    this.withinText.textContent = within ?? "";
    this.withinButton.hidden = within === null;
    for (const name of /** @type {const} */ (["search", "level", "phase"])) {
      // What is being typed has not been asked for yet: an answer to what stood there before leaves it alone.
      if (name === "search" && this.typed.isPending()) continue;
      if (this[name].value !== query[name]) this[name].value = query[name];
    }
    this.clearButton.hidden = !isFiltered;
  }

  /** @param {boolean} isOpen */
  showTree(isOpen) {
    this.treeButton.setAttribute("aria-expanded", String(isOpen));
  }

  destroy() {
    this.typed.cancel();
  }
}

/** Makes a menu of one text or all. @param {string} label @param {string} all @param {string[]} values @param {(value: string) => void} onChange */
export function select(label, all, values, onChange) {
  const options = [h("option", { value: "" }, all), ...values.map((value) => h("option", { value }, value))];
  const element = h("select", { "aria-label": label, onchange: () => onChange(element.value) }, ...options);
  element.hidden = values.length < 2;
  return element;
}
