// The rows in view: a few elements that are filled anew while the list scrolls behind them.

import { visibleRows } from "./scroll.js";
import { h, nullMark } from "../../shared/dom.js";

/** What stands in a row before its cells: its id and nesting depth. */
const FIRST_CELL = 2;
const INDENT = 12;
const MAX_DEPTH = 8;
/** Columns whose cells are told apart by their texts. */
const MARKED = new Set(["phase", "status", "mark"]);

export class GridBody {
  constructor() {
    this.element = h("div", { role: "rowgroup", class: "nb-body" });
    /** @type {import("../columns.js").Column[]} */
    this.columns = [];
    /** @type {any[]} */
    this.pool = [];
  }

  /** @param {import("../columns.js").Column[]} columns */
  setColumns(columns) {
    this.columns = columns;
    this.pool = [];
    this.element.replaceChildren();
  }

  /**
   * Draws the rows at a list position.
   * @param {number} top
   * @param {import("./scroll.js").Sizes} sizes
   * @param {(position: number) => any[] | undefined} rowAt
   * @param {{selected: number | null, active: {row: number, column: number}, isNested: boolean, isGrouped: boolean, open: Set<number>, largest: number, rowName: (row: any[]) => [string, string | null]}} look
   */
  draw(top, sizes, rowAt, look) {
    const { first, last } = visibleRows(top, sizes);
    this.resize(Math.ceil(sizes.viewHeight / sizes.rowHeight) + 1);
    const used = new Set();
    for (let position = first; position <= last; position += 1) {
      const element = this.pool[position % this.pool.length];
      used.add(element);
      element.hidden = false;
      element.style.transform = `translateY(${position * sizes.rowHeight - top}px)`;
      this.fill(element, position, rowAt(position), look);
    }
    for (const element of this.pool) if (!used.has(element)) element.hidden = true;
  }

  /** @param {number} count */
  resize(count) {
    if (this.pool.length === count) return;
    const cells = () => this.columns.map((column, index) => this.cell(column, index));
    while (this.pool.length < count) {
      this.pool.push(h("div", { role: "row", class: "nb-row" }, ...cells()));
      this.element.append(this.pool[this.pool.length - 1]);
    }
    for (const element of this.pool.splice(count)) element.remove();
  }

  /** @param {import("../columns.js").Column} column @param {number} index */
  cell(column, index) {
    return h("div", {
      role: "gridcell", class: `nb-cell${column.isNumber ? " nb-number" : ""}${column.isTail ? " nb-tail" : ""}`, "aria-colindex": index + 1,
      "data-column": index, "data-name": column.name, "data-bar": column.bar !== null,
    });
  }

  /** @param {any} element @param {number} position @param {any[] | undefined} row @param {any} look */
  fill(element, position, row, look) {
    const isSelected = row !== undefined && row[0] === look.selected;
    element.setAttribute("aria-rowindex", String(position + 3));
    element.setAttribute("aria-selected", String(isSelected));
    element.toggleAttribute("data-odd", position % 2 === 1);
    element.position = position;
    this.columns.forEach((_, index) => {
      const isActive = look.active.row === position && look.active.column === index;
      element.children[index].tabIndex = isActive ? 0 : -1;
    });
    const isOpen = look.isGrouped && row !== undefined && row[0] < 0 ? look.open.has(-1 - row[0]) : null;
    if (element.row === row && element.isNested === look.isNested && element.isOpen === isOpen) return;
    element.row = row;
    element.isNested = look.isNested;
    element.isOpen = isOpen;
    mark(element, row, isOpen, look.isGrouped);
    element.toggleAttribute("data-waiting", row === undefined);
    this.columns.forEach((column, index) => this.write(element.children[index], column, row, index, look));
  }

  /** @param {any} cell @param {any} column @param {any[] | undefined} row @param {number} index @param {any} look */
  write(cell, column, row, index, look) {
    const raw = row?.[FIRST_CELL + (column.at ?? index)];
    const text = row === undefined ? "" : column.text(raw);
    if (look.isGrouped && index === 0 && row !== undefined) return this.writeLead(cell, text, row, look);
    // Single rows have no count and no spread.
    if (!column.isFiltered && row && row[0] >= 0) return cell.replaceChildren();
    if (text === null) cell.replaceChildren(nullMark());
    else if (column.isTail) cell.replaceChildren(h("bdi", { dir: "ltr" }, text));
    else cell.textContent = text;
    cell.title = text ?? "null";
    if (MARKED.has(column.name)) cell.setAttribute(`data-${column.name}`, text ?? "");
    if (column.bar) cell.style.setProperty("--nb-bar", String(column.bar(raw, look.largest)));
    if (column.name === "op") {
      const depth = look.isNested && row ? Math.min(row[1], MAX_DEPTH) : 0;
      cell.style.paddingInlineStart = depth ? `${8 + depth * INDENT}px` : "";
    }
  }

  /** Writes the first cell of a row in groups: what a group goes by, or which row one inside is. @param {any} cell @param {string | null} text @param {any[]} row @param {any} look */
  writeLead(cell, text, row, look) {
    const isGroup = row[0] < 0;
    const [id, op] = isGroup ? ["", text] : look.rowName(row);
    cell.title = op ?? "null";
    cell.classList.remove("nb-tail");
    cell.style.paddingInlineStart = isGroup ? "" : "24px";
    const name = op === null ? nullMark() : h("bdi", { dir: "ltr" }, op);
    const mark = isGroup ? h("span", { class: "nb-twisty", "aria-hidden": "true" }) : h("span", { class: "nb-muted" }, `#${id} `);
    // The end of a path tells more than its start, here too.
    cell.replaceChildren(mark, isGroup && this.columns[0].isTail ? h("span", { class: "nb-tail nb-lead" }, name) : name);
  }

  /** Returns the element that shows a position, if it is in view. @param {number} position */
  rowElement(position) {
    return this.pool.find((element) => !element.hidden && element.position === position);
  }

  /** Returns the position of a row that is in view. @param {number} id */
  positionOf(id) {
    return this.pool.find((element) => !element.hidden && element.row?.[0] === id)?.position;
  }
}

/** Marks a row as a group, open or closed, or as one inside a group. @param {HTMLElement} element @param {any[] | undefined} row @param {boolean | null} isOpen @param {boolean} isGrouped */
function mark(element, row, isOpen, isGrouped) {
  if (isOpen === null) element.removeAttribute("aria-expanded");
  else element.setAttribute("aria-expanded", String(isOpen));
  if (isGrouped && row) element.setAttribute("aria-level", row[0] < 0 ? "1" : "2");
  else element.removeAttribute("aria-level");
}
