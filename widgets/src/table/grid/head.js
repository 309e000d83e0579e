// The two header rows of the grid: names that sort, with the profile of each column, and a filter per column.

import { debounced, h } from "../../shared/dom.js";
import { profilePicture, profileText } from "./profile.js";
import { widthHandle, widthKey } from "./width.js";

const PAUSE = 60;

export class GridHead {
  /**
   * @param {{id: string, onSort: (column: any, isAdded: boolean) => void, onFilter: (name: string, text: string) => void,
   *   onDown: (column: number) => void, onWidth: (name: string, width: number | null) => void}} options
   */
  constructor(options) {
    this.options = options;
    /** @type {any[]} */
    this.columns = [];
    this.names = h("div", { role: "row", class: "nb-row nb-names", "aria-rowindex": "1" });
    this.filters = h("div", { role: "row", class: "nb-row nb-filters", "aria-rowindex": "2" });
    this.message = h("div", { class: "nb-filter-error", id: `${options.id}-filter-error`, role: "alert" });
    this.element = h("div", { role: "rowgroup", class: "nb-head" }, this.names, this.filters);
  }

  /** @param {import("../columns.js").Column[]} columns */
  setColumns(columns) {
    this.columns = columns;
    this.names.replaceChildren(...columns.map((column, index) => this.nameCell(column, index)));
    this.filters.replaceChildren(...columns.map((column, index) => this.filterCell(column, index)));
  }

  /** @param {import("../columns.js").Column} column @param {number} index */
  nameCell(column, index) {
    return h(
      "div",
      {
        role: "columnheader", class: column.isNumber ? "nb-cell nb-number" : "nb-cell", "aria-colindex": index + 1,
        "aria-sort": "none", tabindex: "-1", "data-column": index, "data-name": column.name, title: sortTitle(column),
        onclick: (/** @type {MouseEvent} */ event) => this.options.onSort(column, event.shiftKey),
        onkeydown: (/** @type {KeyboardEvent} */ event) => widthKey(event, (width) => this.options.onWidth(column.name, width)),
      },
      h("span", {}, column.label), h("span", { class: "nb-sort-mark", "aria-hidden": "true" }),
      widthHandle((width) => this.options.onWidth(column.name, width)), h("span", { class: "nb-profile", "aria-hidden": "true" }),
    );
  }

  /** @param {import("../columns.js").Column} column @param {number} index */
  filterCell(column, index) {
    const cell = { role: "gridcell", class: "nb-cell", "data-column": index, "data-name": column.name, "aria-colindex": index + 1 };
    if (!column.isFiltered) return h("div", cell);
    const apply = debounced(() => this.options.onFilter(column.name, input.value), PAUSE);
    const input = h("input", {
      type: "text", "aria-label": `Filter ${column.label}`, title: column.hint, placeholder: column.hint.split(" · ")[0], spellcheck: "false", autocomplete: "off",
      oninput: apply.later,
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.filterKey(event, input, apply, index),
    });
    return h("div", cell, input);
  }

  /** @param {KeyboardEvent} event @param {any} input @param {any} apply @param {number} index */
  filterKey(event, input, apply, index) {
    if (event.key === "ArrowDown") {
      event.preventDefault();
      this.options.onDown(index);
    } else if (event.key === "Enter") {
      apply.now();
    } else if (event.key === "Escape" && input.value) {
      input.value = "";
      apply.now();
    }
    event.stopPropagation();
  }

  /** @param {import("../query/query.js").State} query @param {Record<string, string>} errors */
  show(query, errors) {
    this.columns.forEach((column, index) => {
      const place = query.sort.findIndex((part) => part.column === column.name);
      this.names.children[index].setAttribute("aria-sort", place < 0 ? "none" : query.sort[place].descending ? "descending" : "ascending");
      this.names.children[index].children[1].dataset.place = place >= 0 && query.sort.length > 1 ? String(place + 1) : "";
      const input = this.filters.children[index].firstChild;
      if (!input) return;
      const text = query.filters[column.name] ?? "";
      if (input !== document.activeElement && input.value !== text) input.value = text;
      input.toggleAttribute("data-active", text.trim() !== "");
      input.setAttribute("aria-invalid", String(column.name in errors));
      if (column.name in errors) input.setAttribute("aria-describedby", this.message.id);
      else input.removeAttribute("aria-describedby");
    });
    const [first] = this.columns.filter((column) => column.name in errors);
    this.message.textContent = first ? `${first.label}: ${errors[first.name]}` : "";
  }

  /** Shows what the columns hold. @param {Record<string, import("./profile.js").Profile>} profiles by column */
  showProfile(profiles) {
    this.columns.forEach((column, index) => {
      const profile = profiles[column.name];
      if (!profile) return;
      const cell = this.names.children[index];
      cell.lastElementChild.replaceChildren(profilePicture(column, profile));
      cell.title = [sortTitle(column), profileText(column, profile)].filter(Boolean).join("\n");
    });
  }

  /** @param {number} column */
  nameAt(column) {
    return this.names.children[column];
  }

  clearFilters() {
    for (const cell of this.filters.children) if (cell.firstChild) cell.firstChild.value = "";
  }
}

/** @param {import("../columns.js").Column} column */
function sortTitle(column) {
  return `Sort by ${column.label}; with Shift, sort by it after the columns before`;
}
