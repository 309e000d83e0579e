// Two graphs side by side: what is selected in one is shown, framed and selected in the other.

import { Correspondence, counterpartOf, comparedWords, SIDES } from "./data/correspondence.js";
import { textAt } from "./data/data.js";
import { hierarchyOf } from "./data/hierarchy.js";
import { titleOf } from "./data/words.js";
import { amountsOf } from "./model/amounts.js";
import { finiteOf } from "./model/scale.js";
import { counted } from "../shared/units.js";
import { h } from "../shared/dom.js";
import { header } from "../shared/header.js";
import { watchTheme } from "../shared/theme.js";
import { GraphView } from "./view.js";

/** What an overlay is called among the numbers. */
const OVERLAID = "overlay";
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
    /** Numbers of both sides by name. @type {Map<string, number[]>} */
    this.numbers = new Map();
    this.dataOfSides = sides.map((_, side) => this.dataOf(side));
    this.views = holders.map((holder, side) => new GraphView(this.portOf(side), holder, this.dataOfSides[side]));
    this.selectFromOutside();
  }

  destroy() {
    this.unwatch();
    for (const view of this.views) view.destroy();
    this.root.remove();
  }

  /** Shows what the pair of the same graphs before showed, which had other colors. @param {GraphPair} before */
  takeOver(before) {
    this.views.forEach((view, side) => view.takeOver(before.views[side]));
    this.message.textContent = before.message.textContent;
  }

  /** Returns what one side shows; without an overlay where none was given for it. @param {number} side @returns {import("./data/data.js").Data} */
  dataOf(side) {
    const { name, graphs } = this.correspondence.sides[side];
    const heading = { name, title: `${SIDES[side]}: ${name}`, figures: [], notes: [], incomplete: null };
    const { overlay, values } = this.data;
    const own = overlay?.sides ? overlay.sides[side] : overlay;
    const shown = own ? values.map((value) => (value.name === OVERLAID ? { ...value, isInclusive: own.isInclusive } : value)) : values.filter(({ name: way }) => way !== OVERLAID);
    return {
      ...this.data, ...heading, side: SIDES[side], graphs, correspondence: this.correspondence, values: shown, overlay: overlay && own && { ...overlay, ...own },
      numbersOf: (way) => this.numbersOf(way),
    };
  }

  /** Returns the numbers of both sides, of which one scale is made: those of the graphs that were compared first. @param {string} way */
  numbersOf(way) {
    const known = this.numbers.get(way) ?? this.dataOfSides.flatMap((data) => {
      if (!data.values.some(({ name }) => name === way)) return [];
      return finiteOf(amountsOf(data, hierarchyOf(data, data.graphs[0], false), way));
    });
    this.numbers.set(way, known);
    return known;
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
