// The module tree: choosing a module shows only what ran in it or below it.

import { treeKey, visibleNodes } from "../shared/tree.js";
import { h } from "../shared/dom.js";
import { ROOT, shown } from "../shared/names.js";
import { count } from "../shared/numbers.js";

/** Key of the nodes that are no modules. */
const ALL = "all";
const OUTSIDE = "outside";
/** Nodes up to which the tree opens by itself. */
const SHORT = 14;

export class TreePane {
  /** @param {{all: string, amount: (value: number) => string, onChoose: (choice: object) => void}} options `all` names the node of everything, `amount` says what a module took */
  constructor({ all, amount, onChoose }) {
    this.all = all;
    this.amount = amount;
    this.onChoose = onChoose;
    /** @type {any[]} */
    this.nodes = [];
    /** @type {any[]} */
    this.visible = [];
    this.open = new Set();
    this.chosen = ALL;
    this.active = ALL;
    this.tree = h("ul", { role: "tree", "aria-label": "Modules" });
    this.tree.addEventListener("click", (/** @type {MouseEvent} */ event) => this.clicked(event));
    this.tree.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => this.keyed(event));
    this.element = h("div", { class: "nb-tree" }, this.tree);
  }

  /** Fetches the modules page by page. @param {(message: object) => Promise<any>} ask */
  async load(ask) {
    /** @type {any[]} */
    const rows = [];
    let answer = null;
    do {
      answer = await ask({ kind: "modules", offset: rows.length });
      if (!answer) return;
      rows.push(...answer.rows);
    } while (rows.length < answer.total && answer.rows.length);
    this.setModules(rows, answer.outside, answer.amount);
  }

  /**
   * @param {[string, string, string | null, number, boolean, number, number][]} rows model, module, type, depth, has_children, ops, amount
   * @param {[number, number]} outside ops and amount outside any module
   * @param {number} whole amount of all
   */
  setModules(rows, outside, whole) {
    const took = (/** @type {number} */ ops, /** @type {number} */ amount) => ({ ops: count(ops), time: this.amount(amount), fraction: amount / (whole || 1) });
    const none = { model: null, module: null, outside_modules: false };
    this.nodes = [
      { key: ALL, choice: none, name: this.all, depth: 0, hasChildren: false },
      ...rows.map(([model, module, type, depth, hasChildren, ops, amount]) => ({
        key: `${model}\n${module}`, choice: { model: model || null, module, outside_modules: false },
        name: shown(module.split(".").at(-1) || model || ROOT), type: type && shown(type), depth, hasChildren, ...took(ops, amount),
      })),
    ];
    if (outside[0] > 0) {
      this.nodes.push({ key: OUTSIDE, choice: { ...none, outside_modules: true }, name: "Outside modules", depth: 0, hasChildren: false, ...took(...outside) });
    }
    this.openFirst();
    this.draw();
  }

  /** Opens whole levels from the top as long as the tree stays short. */
  openFirst() {
    for (let depth = 0; depth < 4; depth += 1) {
      const level = this.nodes.filter((node) => node.hasChildren && node.depth === depth).map(({ key }) => key);
      const open = new Set([...this.open, ...level]);
      if (depth > 0 && visibleNodes(this.nodes, open).length > SHORT) return;
      this.open = open;
    }
  }

  draw() {
    const hadFocus = this.tree.contains(document.activeElement);
    this.visible = visibleNodes(this.nodes, this.open);
    if (!this.visible.some((node) => node.key === this.active)) this.active = this.chosen;
    if (!this.visible.some((node) => node.key === this.active)) this.active = ALL;
    this.tree.replaceChildren(...this.visible.map((node, index) => this.item(node, index)));
    if (hadFocus) this.focus();
  }

  /** @param {any} node @param {number} index */
  item(node, index) {
    const item = h(
      "li",
      {
        role: "treeitem", "aria-level": node.depth + 1, "aria-selected": String(node.key === this.chosen),
        "aria-expanded": node.hasChildren ? String(this.open.has(node.key)) : null,
        tabindex: node.key === this.active ? "0" : "-1", "data-index": index,
        title: [node.choice.module || node.name, node.type, node.ops && `${node.ops} ops`, node.time].filter(Boolean).join(" · "),
      },
      h("span", { class: "nb-twist", "aria-hidden": "true" }),
      h("span", { class: "nb-tree-name" }, node.name, node.type && node.type !== node.name ? h("span", { class: "nb-muted" }, ` ${node.type}`) : null),
      node.time ? h("span", { class: "nb-tree-time" }, node.time) : null,
    );
    item.style.setProperty("--nb-depth", node.depth);
    item.style.setProperty("--nb-bar", node.fraction ?? 0);
    return item;
  }

  clicked(/** @type {MouseEvent} */ event) {
    const target = /** @type {any} */ (event.target);
    const item = target.closest("[role=treeitem]");
    if (!item) return;
    const node = this.visible[Number(item.dataset.index)];
    this.active = node.key;
    if (target.closest(".nb-twist") && node.hasChildren) this.toggle(node.key);
    else this.choose(node);
    this.focus();
  }

  keyed(/** @type {KeyboardEvent} */ event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = this.visible.findIndex((node) => node.key === this.active);
    if (event.key === "Enter" || event.key === " ") {
      this.choose(this.visible[at]);
    } else {
      const action = treeKey(event.key, at, this.visible, this.open);
      if (!action) return;
      if (action.go !== undefined) this.active = this.visible[action.go].key;
      if (action.open !== undefined) this.open.add(action.open);
      if (action.close !== undefined) this.open.delete(action.close);
      this.draw();
    }
    this.focus();
    event.preventDefault();
  }

  toggle(/** @type {string} */ key) {
    if (!this.open.delete(key)) this.open.add(key);
    this.draw();
  }

  choose(/** @type {any} */ node) {
    this.chosen = node.key;
    this.draw();
    this.onChoose(node.choice);
  }

  /** Goes back to all modules without telling. */
  reset() {
    this.chosen = ALL;
    this.draw();
  }

  focus() {
    const item = this.tree.querySelector("[tabindex='0']");
    item?.focus({ preventScroll: true });
    item?.scrollIntoView({ block: "nearest" });
  }
}
