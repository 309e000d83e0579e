// The grid: header rows, rows in view, scrolling, and moving by keys.

import { moved } from "./keys.js";
import { clampTop, scale, scrollHeight, topToShow } from "./scroll.js";
import { h } from "../../shared/dom.js";
import { GridBody } from "./body.js";
import { GridHead } from "./head.js";

export const ROW_HEIGHT = 24;
/** What stands in a row before its cells: its number and how deep it is nested. */
const FIRST_CELL = 2;
/** Below this width the columns are made narrower. */
const NARROW = 480;
const NARROWING = 0.82;

export class Grid {
  /**
   * @param {{id: string, label: string, columnsOf: (names: string[]) => any[], rowAt: (position: number) => any[] | undefined, onView: () => void, onSort: (column: any, isAdded: boolean) => void,
   *   onFilter: (name: string, text: string) => void, onColumns: () => void, onSelect: (id: number | null) => void}} options
   */
  constructor(options) {
    this.options = options;
    this.rowCount = 0;
    this.top = 0;
    this.active = { row: 0, column: 0 };
    /** @type {number | null} */
    this.selected = null;
    this.isNested = true;
    this.isGrouped = false;
    /** A row of each group that is open. @type {Set<number>} */
    this.open = new Set();
    /** @type {Set<string>} */
    this.hidden = new Set();
    /** Widths that were chosen. @type {Map<string, number>} */
    this.widths = new Map();
    this.columnNames = "";
    /** @type {import("../columns.js").Column[]} */
    this.allColumns = [];
    /** The largest value shown of the column that has bars. */
    this.largest = 0;
    this.frame = 0;
    this.head = new GridHead({ ...options, onDown: (column) => this.moveTo({ row: 0, column }), onWidth: (name, width) => this.setWidth(name, width) });
    this.body = new GridBody();
    this.canvas = h("div", { class: "nb-canvas", role: "presentation" }, this.head.element, this.body.element);
    this.element = h(
      "div",
      { class: "nb-grid", role: "grid", "aria-label": options.label, "aria-multiselectable": "false", tabindex: "-1" },
      this.canvas,
    );
    this.listen();
  }

  listen() {
    this.element.addEventListener("scroll", () => this.scrolled(), { passive: true });
    this.element.addEventListener("wheel", (/** @type {WheelEvent} */ event) => this.wheeled(event), { passive: false });
    this.element.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => this.keyed(event));
    this.body.element.addEventListener("click", (/** @type {MouseEvent} */ event) => this.clicked(event));
    this.resizes = new ResizeObserver(() => this.layout());
    this.resizes.observe(this.element);
  }

  destroy() {
    this.resizes?.disconnect();
    window.cancelAnimationFrame(this.frame);
  }

  /** @param {string[]} names */
  setColumns(names) {
    const wanted = [...names, "hidden", ...this.hidden].join();
    if (this.columnNames === wanted) return;
    this.columnNames = wanted;
    this.allColumns = this.options.columnsOf(names).map((column, at) => ({ ...column, at }));
    this.columns = this.allColumns.filter(({ name, at }) => at === 0 || !this.hidden.has(name));
    this.active.column = Math.min(this.active.column, this.columns.length - 1);
    this.head.setColumns(this.columns);
    this.body.setColumns(this.columns);
    this.element.setAttribute("aria-colcount", String(this.columns.length));
  }

  /** Hides columns, and shows all others. @param {Set<string>} names */
  hide(names) {
    this.hidden = new Set(names);
    if (this.allColumns.length) this.setColumns(this.allColumns.map(({ name }) => name));
    this.options.onColumns();
    this.layout();
  }

  /** @param {string} name @param {number | null} width in pixels; null for the column's own */
  setWidth(name, width) {
    if (width === null) this.widths.delete(name);
    else this.widths.set(name, Math.max(Math.round(width), 32));
    this.layout();
  }

  setWidths() {
    if (!this.columns) return;
    const factor = this.element.clientWidth < NARROW ? NARROWING : 1;
    const widths = this.columns.map(({ name, width }) => this.widths.get(name) ?? Math.round(width * factor));
    const tracks = widths.map((width, index) => (index === widths.length - 1 ? `minmax(${width}px, 1fr)` : `${width}px`));
    this.canvas.style.setProperty("--nb-columns", tracks.join(" "));
    this.canvas.style.setProperty("--nb-first", `${widths[0]}px`);
    this.canvas.style.minWidth = `${widths.reduce((sum, width) => sum + width, 0)}px`;
  }

  /** Shows another list of rows, from its start or from where it is. @param {number} rowCount @param {boolean} inPlace */
  setRows(rowCount, inPlace = false) {
    this.rowCount = rowCount;
    this.element.setAttribute("role", this.isGrouped ? "treegrid" : "grid");
    this.element.setAttribute("aria-rowcount", String(rowCount + 2));
    this.active.row = Math.min(Math.max(this.active.row, -1), inPlace ? rowCount - 1 : 0);
    if (rowCount === 0) this.active.row = -1;
    this.layout();
    if (!inPlace) this.scrollTo(0);
  }

  get sizes() {
    return { rowCount: this.rowCount, rowHeight: ROW_HEIGHT, viewHeight: this.viewHeight };
  }

  get viewHeight() {
    return Math.max(this.element.clientHeight - this.head.element.offsetHeight, 0);
  }

  layout() {
    this.setWidths();
    const height = this.viewHeight;
    this.body.element.style.height = `${height}px`;
    this.body.element.style.top = `${this.head.element.offsetHeight}px`;
    this.canvas.style.height = `${this.head.element.offsetHeight + Math.max(scrollHeight(this.sizes), height)}px`;
    this.top = clampTop(this.top, this.sizes);
    this.draw();
    this.options.onView();
  }

  scrolled() {
    // A scroll that our own position explains is not one of the user's.
    const factor = scale(this.sizes);
    if (Math.abs(this.element.scrollTop - this.top / factor) < 1.5) return;
    this.top = clampTop(this.element.scrollTop * factor, this.sizes);
    this.drawSoon();
  }

  wheeled(/** @type {WheelEvent} */ event) {
    // A list that is higher than its element would run too fast under the wheel, so it moves by list pixels.
    if (scale(this.sizes) === 1 || event.ctrlKey || event.shiftKey || !event.deltaY) return;
    const step = event.deltaMode === 1 ? ROW_HEIGHT : event.deltaMode === 2 ? this.viewHeight : 1;
    const before = this.top;
    this.scrollTo(this.top + event.deltaY * step);
    if (this.top !== before) event.preventDefault();
  }

  scrollTo(/** @type {number} */ top) {
    this.top = clampTop(top, this.sizes);
    this.element.scrollTop = this.top / scale(this.sizes);
    this.drawSoon();
  }

  drawSoon() {
    if (this.frame) return;
    this.frame = window.requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
      this.options.onView();
    });
  }

  draw() {
    if (!this.columns) return;
    const hadFocus = this.body.element.contains(document.activeElement);
    this.body.draw(this.top, this.sizes, this.options.rowAt, this);
    const cell = this.activeCell();
    this.columns.forEach((_, index) => {
      this.head.nameAt(index).tabIndex = this.active.row === -1 && this.active.column === index ? 0 : -1;
    });
    // The row with the focus may have left the view; the grid keeps the focus until a key brings the row back.
    this.element.tabIndex = cell ? -1 : 0;
    if (hadFocus && cell !== document.activeElement) (cell ?? this.element).focus({ preventScroll: true });
  }

  /** Names a row inside a group by its op and that op's number, which is its own where no column has it. @param {any[]} row @returns {[string, string | null]} */
  rowName(row) {
    const [id, op] = ["op_id", "op"].map((name) => this.allColumns.find((column) => column.name === name));
    const text = (/** @type {import("../columns.js").Column | undefined} */ column) => column?.text(row[FIRST_CELL + (column.at ?? 0)]) ?? null;
    return [text(id) ?? String(row[0]), text(op)];
  }

  activeCell() {
    const { row, column } = this.active;
    return row === -1 ? this.head.nameAt(column) : this.body.rowElement(row)?.children[column];
  }

  keyed(/** @type {KeyboardEvent} */ event) {
    const target = /** @type {any} */ (event.target);
    if (target.tagName === "INPUT" || event.altKey) return;
    const pageRows = Math.max(Math.floor(this.viewHeight / ROW_HEIGHT) - 1, 1);
    const to = moved(event, this.active, { rowCount: this.rowCount, columnCount: this.columns?.length ?? 0, pageRows });
    if (to) this.moveTo(to);
    else if (event.key === "Enter" || event.key === " ") this.activate(event.shiftKey);
    else if (event.key === "Escape") this.options.onSelect(null);
    else return;
    event.preventDefault();
  }

  activate(isAdded = false) {
    const { row, column } = this.active;
    if (row === -1) this.options.onSort(this.columns?.[column], isAdded);
    else if (this.options.rowAt(row)) this.options.onSelect(this.options.rowAt(row)?.[0]);
  }

  clicked(/** @type {MouseEvent} */ event) {
    const target = /** @type {any} */ (event.target);
    const row = target.closest(".nb-row");
    if (row?.row === undefined) return;
    this.moveTo({ row: row.position, column: Number(target.closest(".nb-cell")?.dataset.column ?? 0) });
    this.options.onSelect(row.row[0]);
  }

  /** Makes a cell the active one, brings it into view and focuses it. @param {{row: number, column: number}} cell */
  moveTo(cell) {
    this.active = { row: Math.min(cell.row, this.rowCount - 1), column: cell.column };
    if (this.active.row >= 0) this.reveal(this.active.row);
    this.draw();
    const element = this.activeCell();
    element?.focus({ preventScroll: true });
    element?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  /** Scrolls a row into view. @param {number} row */
  reveal(row) {
    const top = topToShow(row, this.top, this.sizes);
    if (top !== this.top) this.scrollTo(top);
  }
}
