// What can be done with a table as a whole: grouping its rows, choosing its columns, taking its rows along.

import { h } from "../../shared/dom.js";

export class TableMenu {
  /**
   * @param {{ways: Record<string, import("../query/grouping.js").Way>, onGroup: (name: string) => void, onColumns: (hidden: Set<string>) => void,
   *   onCopy: () => void, onSave: () => void}} options
   */
  constructor({ ways, onGroup, onColumns, onCopy, onSave }) {
    this.onColumns = onColumns;
    /** @type {Set<string>} */
    this.hidden = new Set();
    this.names = "";
    const groups = Object.entries(ways).map(([value, { label }]) => h("option", { value }, label));
    this.group = h("select", { "aria-label": "Group by", onchange: () => onGroup(this.group.value) }, h("option", { value: "" }, "no groups"), ...groups);
    this.list = h("ul", { class: "nb-choices", "aria-label": "Columns" });
    this.columns = h("details", { class: "nb-columns", onkeydown: (/** @type {KeyboardEvent} */ event) => this.keyed(event), onfocusout: (/** @type {FocusEvent} */ event) => this.left(event) },
      h("summary", { role: "button" }, "Columns"), this.list);
    this.element = h("div", { class: "nb-menu", role: "group", "aria-label": "Table" },
      h("label", { hidden: !groups.length }, "group by ", this.group), this.columns,
      h("button", { type: "button", title: "Copy the rows that are listed, with tabs between their cells", onclick: onCopy }, "Copy"),
      h("button", { type: "button", title: "Save the rows that are listed as a CSV file", onclick: onSave }, "CSV"));
  }

  /** @param {string} group @param {import("../columns.js").Column[]} columns */
  show(group, columns) {
    if (this.group.value !== group) this.group.value = group;
    const names = columns.map(({ name }) => name).join();
    if (names === this.names) return;
    this.names = names;
    // The first column holds what opens groups.
    this.list.replaceChildren(...columns.slice(1).map(({ name, label }) => h("li", {}, h("label", {},
      h("input", { type: "checkbox", checked: !this.hidden.has(name), onchange: (/** @type {any} */ { target }) => this.choose(name, target.checked) }), ` ${label}`))));
  }

  /** @param {string} name @param {boolean} isShown */
  choose(name, isShown) {
    if (isShown) this.hidden.delete(name);
    else this.hidden.add(name);
    this.onColumns(this.hidden);
  }

  /** @param {KeyboardEvent} event */
  keyed(event) {
    if (event.key !== "Escape" || !this.columns.open) return;
    this.columns.open = false;
    this.columns.querySelector("summary").focus();
    event.stopPropagation();
  }

  /** Closes the list of columns when the focus goes elsewhere. @param {FocusEvent} event */
  left({ relatedTarget }) {
    if (relatedTarget && !this.columns.contains(relatedTarget)) this.columns.open = false;
  }
}
