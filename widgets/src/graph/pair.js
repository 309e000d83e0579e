// Two graphs side by side: what is selected in one is shown, framed and selected in the other.

import { Correspondence, counterpartOf, comparedWords, SIDES } from "./data/correspondence.js";
import { textAt } from "./data/data.js";
import { titleOf } from "./data/words.js";
import { counted } from "../shared/units.js";
import { h } from "../shared/dom.js";
import { header } from "../shared/header.js";
import { watchTheme } from "../shared/theme.js";
import { GraphView } from "./view.js";

const HINT = "Select a part or a node: its counterpart is selected on the other side.";

export class GraphPair {
  /** @param {import("./data/selection.js").SharedSelection} shared @param {HTMLElement} el @param {import("./data/data.js").Data} data with a comparison */
  constructor(shared, el, data) {
    this.shared = shared;
    this.data = data;
    const { sides } = /** @type {import("./data/correspondence.js").Comparison} */ (data.comparison);
    this.correspondence = new Correspondence(/** @type {any} */ (data.comparison));
    this.message = h("p", { class: "nb-graph-match", role: "status", "aria-live": "polite" }, HINT);
    const holders = sides.map(({ name }, side) => h("section", { "aria-label": `${SIDES[side]} graph: ${name}` }));
    this.root = h("div", { class: "nbkit nbkit-picture nbkit-graph-pair" }, header({ ...data, phases: [] }), this.message, h("div", { class: "nb-graph-sides" }, ...holders));
    el.append(this.root);
    this.unwatch = watchTheme(this.root, () => {});
    this.views = holders.map((holder, side) => new GraphView(this.portOf(side), holder, this.dataOf(side)));
    this.selectFromOutside();
  }

  destroy() {
    this.unwatch();
    for (const view of this.views) view.destroy();
    this.root.remove();
  }

  /** Returns what one side shows. @param {number} side */
  dataOf(side) {
    const { name, graphs } = this.correspondence.sides[side];
    const heading = { name, title: `${SIDES[side]}: ${name}`, figures: [], notes: [], incomplete: null };
    return { ...this.data, ...heading, side: SIDES[side], graphs, correspondence: this.correspondence };
  }

  /** Returns the selection as one side sees it; this pair tells it what is selected elsewhere. @param {number} side */
  portOf(side) {
    return {
      news: () => undefined,
      tell: (/** @type {import("./model/model.js").GraphModel} */ model, /** @type {number} */ item, /** @type {boolean} */ isAsked) => {
        this.shared.tell(model, item, isAsked);
        this.follow(side, model, item);
      },
    };
  }

  /** Selects on the other side what corresponds to an item of this one. @param {number} side @param {import("./model/model.js").GraphModel} model @param {number} item */
  follow(side, model, item) {
    const other = this.views[1 - side];
    const counterpart = item < 0 ? null : counterpartOf(this.correspondence, model.tree, item);
    const there = counterpart?.rows.length ? other.showCounterpart(counterpart) : -1;
    if (there < 0) other.mark(-1);
    this.message.textContent = item < 0 ? HINT : this.wordsFor(model, item, there < 0 ? "" : titleOf(this.data, other.model.tree, there), counterpart?.rows.length ?? 0, SIDES[1 - side]);
  }

  /** @param {import("./model/model.js").GraphModel} model @param {number} item @param {string} counterpart its title @param {number} count @param {string} side the other one */
  wordsFor({ tree, data }, item, counterpart, count, side) {
    const [title, words] = [titleOf(data, tree, item), comparedWords(data, tree, item)];
    if (!counterpart) return `${title} has no counterpart on the ${side}${words ? `: ${words}` : ""}.`;
    const more = count > 1 ? ` and ${counted(count - 1, "more counterpart")}` : "";
    return `${title} ↔ ${counterpart}${more}${words ? `: ${words}` : ""}.`;
  }

  /** Reveals what Python or another widget has selected, on its side, and so its counterpart. */
  selectFromOutside() {
    const asked = this.shared.news(this.data);
    if (asked === undefined) return;
    if (asked) return this.views[this.correspondence.sideOf(textAt(this.data[asked.table].texts.graph, asked.row))].selectAsked(asked);
    for (const view of this.views) view.mark(-1);
    this.message.textContent = HINT;
  }
}
