// One graph as it is shown: its hierarchy, its edges, its scene, and what is computed of them once.

import { amountsOf, amountText } from "./amounts.js";
import { colored } from "./colors.js";
import { textAt } from "../data/data.js";
import { NOTES } from "../data/correspondence.js";
import { detailsOf } from "./describe.js";
import { Edges, isBelow } from "../data/edges.js";
import { COUNTED } from "../data/parameters.js";
import { hierarchyOf, KINDS, pathTo, ROOT } from "../data/hierarchy.js";
import { fits } from "../layout/camera.js";
import { Scene } from "../layout/scene.js";
import { searchItems } from "../data/search.js";
import { lineText } from "../data/words.js";

/** Most lines from the selected item to what lies on other levels. */
const MOST_FAR = 200;
/** Most boxes that a graph opens with, but for those of parts that are alone on their level. */
const MOST_AT_FIRST = 16;
/** Most of them on the way to what repeats. */
const MOST_ON_THE_WAY = 48;

export class GraphModel {
  /** @param {import("../data/data.js").Data} data @param {string} graph @param {boolean} hasValues @param {{title: number, subtitle: number}} letter widths */
  constructor(data, graph, hasValues, letter) {
    this.data = data;
    this.tree = hierarchyOf(data, graph, hasValues);
    this.edges = new Edges(data.edges, this.tree);
    this.scene = new Scene(data, this.tree, this.edges, letter);
    /** @type {Map<string, any>} */
    this.kept = new Map();
    this.isFitted = false;
    this.openDown(MOST_AT_FIRST);
  }

  /** Closes parts where not all that is shown fits in view; once, before anybody opens one. @param {{width: number, height: number}} view */
  openToFit(view) {
    if (!this.isFitted && !fits(this.scene.drawn(), view)) this.fold(MOST_AT_FIRST, view);
    this.isFitted = true;
  }

  /** Opens the way down to what repeats, through the forward and its largest parts, up to so many boxes, as long as they fit in view; what is alone on its level anyway. @param {number} most @param {{width: number, height: number}} [view] */
  openDown(most, view) {
    const { children, kind, size } = this.tree;
    for (let [at, boxes] = [ROOT, 0]; children[at].length && !children[at].some((item) => kind[item] === KINDS.repeats); ) {
      const [only, ...others] = children[at];
      const parts = children[at].filter((item) => kind[item] === KINDS.part);
      // Of several parts at the top, which are the phases of a step, the forward is where to begin.
      const open = at === ROOT && parts.length > 1 ? parts.filter((item) => this.isForward(item)) : parts;
      const largest = open.sort((left, right) => size[right] - size[left] || left - right)[0];
      const next = others.length ? largest : only;
      boxes += others.length;
      if (next === undefined || this.isRepeats(next)) return;
      // The way to what repeats is what one looks for: it is open also where not all of it fits.
      const leads = this.repeatsIn(next) >= 0;
      if (others.length && boxes + children[next].length > (leads && most ? MOST_ON_THE_WAY : most)) return;
      this.scene.toggle([next], true);
      // What is all of a graph is open also where it does not fit.
      if (view && (at !== ROOT || others.length) && !leads && !fits(this.scene.drawn(), view)) return this.scene.toggle([next], false);
      at = next;
    }
  }

  /** Returns what repeats on the way down through the largest parts: the first such item, -1 for none. @param {number} item @returns {number} */
  repeatsIn(item) {
    const { children, kind, size } = this.tree;
    const found = children[item].find((child) => kind[child] === KINDS.repeats) ?? (item !== ROOT && this.isRepeats(item) ? item : -1);
    if (found >= 0) return found;
    const parts = children[item].filter((child) => kind[child] === KINDS.part);
    const open = item === ROOT && parts.length > 1 ? parts.filter((part) => this.isForward(part)) : parts;
    const largest = open.sort((left, right) => size[right] - size[left] || left - right)[0] ?? -1;
    return largest < 0 ? -1 : this.repeatsIn(largest);
  }

  /** Tells whether a part holds nothing but repeats of one form. @param {number} item */
  isRepeats(item) {
    const { children, kind, row } = this.tree;
    const forms = new Set(children[item].map((child) => (kind[child] === KINDS.part ? this.data.parts.numbers.repeat_of[row[child]] : NaN)));
    return children[item].length > 1 && forms.size === 1 && !forms.has(NaN);
  }

  /** @param {number} item a part */
  isForward(item) {
    return textAt(this.data.parts.texts.phase, this.tree.row[item]) === "forward";
  }

  /** Opens these items and no others, as they were in a graph of the same nodes. @param {Set<number>} open */
  reopen(open) {
    this.isFitted = true;
    this.scene.toggle([...this.scene.open].filter((item) => !open.has(item)), false);
    this.scene.toggle([...open], true);
  }

  /** Closes everything again, but for the way down to so many boxes and what is alone on its level. @param {number} [most] @param {{width: number, height: number}} [view] in which they are to fit */
  fold(most = 0, view) {
    this.scene.toggle([...this.scene.open].filter((item) => item !== ROOT), false);
    this.openDown(most, view);
  }

  /** Computes a value once and keeps it by its key. @template T @param {string} key @param {() => T} make @returns {T} */
  once(key, make) {
    if (!this.kept.has(key)) this.kept.set(key, make());
    return this.kept.get(key);
  }

  /** @param {string} way */
  colors(way) {
    return this.once(`colors ${way}`, () => colored(this.data, this.tree, way));
  }

  /** Returns what the outline says of an item: what an overlay has of it, how it compares, else what its color stands for if that is a number. @param {number} item @param {string} way @returns {string} */
  noteOf(item, way) {
    if (this.data.correspondence && way !== "overlay") return NOTES[this.colors("difference").codes[item]] ?? "";
    const value = this.data.values.find(({ name }) => name === way);
    if (!value) return way === "overlay" ? (this.categoryOf(item) ?? "") : "";
    const amount = this.amounts[way][item];
    return Number.isNaN(amount) || way === COUNTED ? "" : amountText(value, amount);
  }

  /** Returns what an overlay of texts says of an item. @param {number} item */
  categoryOf(item) {
    const { overlay, values } = this.data;
    if (!overlay || values.some(({ name }) => name === "overlay")) return null;
    const { categories, codes } = this.colors("overlay");
    return categories[codes[item]]?.label ?? null;
  }

  /** @returns {Record<string, Float64Array>} */
  get amounts() {
    return this.once("amounts", () => Object.fromEntries(this.data.values.map(({ name }) => [name, amountsOf(this.data, this.tree, name)])));
  }

  /** @param {number} item */
  details(item) {
    return detailsOf(this.data, this.tree, this.edges, item, this.amounts, [this.data.overlay?.label ?? "", this.categoryOf(item)]);
  }

  /** @param {string} text */
  search(text) {
    return this.once(`search ${text}`, () => searchItems(this.data, this.tree, text));
  }

  /** Makes an item visible: opens all that holds it. @param {number} item */
  reveal(item) {
    this.scene.toggle(pathTo(this.tree, item).slice(0, -1), true);
  }

  /** @param {import("../layout/scene.js").Line} line */
  labelOf(line) {
    return this.once(`line ${line.holder} ${line.from} ${line.to}`, () => lineText(this.data, line.edges));
  }

  /** Returns the boxes that the selected item is connected with, but for those that a line of its level leads to. @param {number} item @returns {{from: any, to: any}[]} */
  far(item) {
    const { tree, edges, scene } = this;
    const drawn = scene.drawn();
    const box = drawn.boxOf.get(item);
    if (!box) return [];
    const [inputs, outputs] = [new Set(), new Set()];
    const note = (/** @type {Set<number>} */ ends, /** @type {number} */ node) => {
      const end = edges.itemOf(node);
      if (end < 0 || isBelow(tree, end, item)) return;
      const shown = scene.shownFor(end);
      if (tree.parent[shown] !== tree.parent[item]) ends.add(shown);
    };
    for (const edge of edges.crossing(item)) {
      note(inputs, edges.src[edge]);
      note(outputs, edges.dst[edge]);
    }
    const boxes = (/** @type {Set<number>} */ ends) => [...ends].map((end) => drawn.boxOf.get(end)).filter(Boolean).slice(0, MOST_FAR);
    return [...boxes(inputs).map((from) => ({ from, to: box })), ...boxes(outputs).map((to) => ({ from: box, to }))];
  }

  /** Returns the rows of the nodes that an item is or holds. @param {number} item @returns {number[]} */
  nodesOf(item) {
    return [...this.edges.nodesIn(item)];
  }

  /** Returns the row of an item in nodes; null if it is no node. @param {number} item */
  nodeOf(item) {
    return item >= 0 && this.tree.kind[item] === KINDS.node ? this.tree.row[item] : null;
  }

  /** Returns the row of an item in parts; null if it is no part. @param {number} item */
  partOf(item) {
    return item >= 0 && this.tree.kind[item] === KINDS.part ? this.tree.row[item] : null;
  }
}
