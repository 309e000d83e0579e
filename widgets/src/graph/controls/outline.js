// The outline: the same hierarchy as a tree of lines beside the picture, which it drives.

import { KINDS, ROOT } from "../data/hierarchy.js";
import { subtitleOf, titleOf } from "../data/words.js";
import { stepColor } from "./legend.js";
import { treeKey } from "../../shared/tree.js";
import { h } from "../../shared/dom.js";

const ROW = 22;
/** Rows drawn beyond those in view. */
const BEYOND = 8;

export class Outline {
  /** @param {{onFocus: (item: number) => void, onEnter: (item: number) => void, onToggle: (item: number, isOpen: boolean) => void, onKey: (event: KeyboardEvent) => void}} options */
  constructor(options) {
    this.options = options;
    /** @type {{item: number, name: string, key: string, depth: number, hasChildren: boolean, position: number, among: number}[]} */
    this.rows = [];
    this.active = -1;
    /** What is drawn, by row. @type {Map<number, HTMLElement>} */
    this.drawn = new Map();
    this.list = h("ul", { role: "tree", "aria-label": "Parts and nodes of the graph" });
    this.element = h("div", { class: "nb-graph-outline" }, this.list);
    this.element.addEventListener("scroll", () => this.draw(), { passive: true });
    this.list.addEventListener("click", (/** @type {MouseEvent} */ event) => this.clicked(event));
    this.list.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => this.keyed(event));
    this.resizes = new ResizeObserver(() => this.draw());
    this.resizes.observe(this.element);
  }

  destroy() {
    this.resizes.disconnect();
  }

  /** @param {import("../data/data.js").Data} data @param {import("../data/hierarchy.js").Hierarchy} tree @param {Set<number>} open @param {{focus: number, selected: number, colors: import("../model/colors.js").Colors, noteOf: (item: number) => string}} look */
  show(data, tree, open, look) {
    Object.assign(this, { data, tree, open, look });
    this.rows = rowsOf(data, tree, open);
    if (!this.rows.some(({ item }) => item === this.active)) this.active = this.rows[0]?.item ?? -1;
    this.list.style.height = `${this.rows.length * ROW}px`;
    this.drawAnew();
  }

  /** @param {{focus: number, selected: number, colors: import("../model/colors.js").Colors, noteOf: (item: number) => string}} look */
  mark(look) {
    this.look = look;
    if (look.focus >= 0 && look.focus !== this.active && this.rows.some(({ item }) => item === look.focus)) {
      this.active = look.focus;
      this.scrollTo(this.activeRow);
    }
    this.drawAnew();
  }

  get activeRow() {
    return this.rows.findIndex(({ item }) => item === this.active);
  }

  /** Brings a row into view. @param {number} row */
  scrollTo(row) {
    const { scrollTop, clientHeight } = this.element;
    if (row * ROW < scrollTop) this.element.scrollTop = row * ROW;
    else if ((row + 1) * ROW > scrollTop + clientHeight) this.element.scrollTop = (row + 1) * ROW - clientHeight;
  }

  /** Draws the rows in view after their looks have changed. */
  drawAnew() {
    const hadFocus = this.list.contains(document.activeElement);
    this.list.replaceChildren();
    this.drawn.clear();
    this.draw();
    if (hadFocus) this.list.querySelector("[tabindex='0']")?.focus({ preventScroll: true });
  }

  /**
   * Draws the rows in view, and the one that has the focus wherever it is. A row that was in view before stays the same
   * element: a click is lost whose element goes while the button is down, as when a row was just brought into view.
   */
  draw() {
    const first = Math.max(Math.floor(this.element.scrollTop / ROW) - BEYOND, 0);
    const last = Math.min(Math.ceil((this.element.scrollTop + this.element.clientHeight) / ROW) + BEYOND, this.rows.length);
    const active = this.activeRow;
    const shown = Array.from({ length: Math.max(last - first, 0) }, (_, at) => first + at);
    if (active >= last) shown.push(active);
    else if (active >= 0 && active < first) shown.unshift(active);
    const before = this.drawn;
    this.drawn = new Map(shown.map((row) => [row, before.get(row) ?? this.item(row)]));
    for (const [row, element] of before) if (!this.drawn.has(row)) element.remove();
    [...this.drawn.values()].forEach((element, at) => {
      if (this.list.children[at] !== element) this.list.insertBefore(element, this.list.children[at] ?? null);
    });
  }

  /** @param {number} row */
  item(row) {
    const { data, tree, open, look } = /** @type {any} */ (this);
    const { item, name, depth, hasChildren, position, among } = this.rows[row];
    const subtitle = subtitleOf(data, tree, item);
    const note = look.noteOf(item);
    const swatch = h("span", { class: "nb-graph-dot", "aria-hidden": "true" });
    const code = look.colors.codes[item];
    const { color = "", strength } = code < 0 ? {} : look.colors.categories[code];
    swatch.style.backgroundColor = strength === undefined ? color : stepColor(color, strength);
    swatch.toggleAttribute("data-step", strength !== undefined);
    const element = h("li", {
      role: "treeitem", "aria-level": depth + 1, "aria-posinset": position, "aria-setsize": among, "aria-selected": String(item === look.selected),
      "aria-expanded": hasChildren ? String(open.has(item)) : null, tabindex: item === this.active ? "0" : "-1", "data-row": row, title: [name, note, subtitle].filter(Boolean).join(" · "),
    }, h("span", { class: "nb-twist", "aria-hidden": "true" }), swatch, h("span", { class: "nb-graph-name" }, name), note ? h("span", { class: "nb-graph-note" }, note) : null, h("span", { class: "nb-muted" }, subtitle));
    element.style.setProperty("--nb-depth", String(depth));
    element.style.top = `${row * ROW}px`;
    return element;
  }

  clicked(/** @type {MouseEvent} */ event) {
    const target = /** @type {any} */ (event.target);
    const row = this.rows[Number(target.closest("[role=treeitem]")?.dataset.row ?? -1)];
    if (!row) return;
    this.active = row.item;
    if (target.closest(".nb-twist") && row.hasChildren) this.options.onToggle(row.item, !(/** @type {any} */ (this).open.has(row.item)));
    else this.options.onEnter(row.item);
    this.list.querySelector("[tabindex='0']")?.focus({ preventScroll: true });
  }

  keyed(/** @type {KeyboardEvent} */ event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const row = this.rows[this.activeRow];
    if (!row) return;
    if (event.key === "Enter" || event.key === " ") this.options.onEnter(row.item);
    else if (!this.moved(event.key)) return this.options.onKey(event);
    event.preventDefault();
    event.stopPropagation();
  }

  /** Does what a key of a tree does. @param {string} key */
  moved(key) {
    if (!key.startsWith("Arrow") && key !== "Home" && key !== "End") return false;
    const open = new Set([.../** @type {any} */ (this).open].map(String));
    const action = treeKey(key, this.activeRow, this.rows, open);
    if (action?.open !== undefined) this.options.onToggle(Number(action.open), true);
    if (action?.close !== undefined) this.options.onToggle(Number(action.close), false);
    if (action?.go !== undefined) {
      this.active = this.rows[action.go].item;
      this.scrollTo(action.go);
      this.options.onFocus(this.active);
    }
    return true;
  }
}

/** Returns the rows that can be seen: items whose holders are all open. @param {import("../data/data.js").Data} data @param {import("../data/hierarchy.js").Hierarchy} tree @param {Set<number>} open */
function rowsOf(data, tree, open) {
  /** @type {{item: number, name: string, key: string, depth: number, hasChildren: boolean, position: number, among: number}[]} */
  const rows = [];
  /** @param {number} holder */
  const add = (holder) => {
    const children = tree.children[holder];
    children.forEach((item, index) => {
      const hasChildren = tree.kind[item] !== KINDS.node && tree.children[item].length > 0;
      rows.push({ item, name: titleOf(data, tree, item), key: String(item), depth: tree.depth[item] - 1, hasChildren, position: index + 1, among: children.length });
      if (open.has(item)) add(item);
    });
  };
  add(ROOT);
  return rows;
}
