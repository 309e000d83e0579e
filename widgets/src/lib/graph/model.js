// One graph as it is shown: its hierarchy, its edges, its scene, and what is computed of them once.

import { amountsOf, coloured } from "./colors.js";
import { detailsOf } from "./describe.js";
import { Edges, isBelow } from "./edges.js";
import { hierarchyOf, KINDS, pathTo, ROOT } from "./hierarchy.js";
import { Scene } from "./scene.js";
import { found } from "./search.js";
import { lineText } from "./words.js";

/** Most lines from the selected item to what lies on other levels. */
const MOST_FAR = 200;

export class GraphModel {
  /** @param {import("./data.js").Data} data @param {string} graph @param {boolean} hasValues @param {{title: number, subtitle: number}} letter widths */
  constructor(data, graph, hasValues, letter) {
    this.data = data;
    this.tree = hierarchyOf(data, graph, hasValues);
    this.edges = new Edges(data.edges, this.tree);
    this.scene = new Scene(data, this.tree, this.edges, letter);
    /** @type {Map<string, any>} */
    this.kept = new Map();
    this.openOnly();
  }

  /** Opens what is alone on its level: there is nothing else to see. */
  openOnly() {
    for (let at = ROOT; this.tree.children[at].length === 1; at = this.tree.children[at][0]) this.scene.toggle([this.tree.children[at][0]], true);
  }

  /** Closes everything again, but for what is alone on its level. */
  fold() {
    this.scene.toggle([...this.scene.open].filter((item) => item !== ROOT), false);
    this.openOnly();
  }

  /** What a function gives, computed once. @template T @param {string} key @param {() => T} make @returns {T} */
  once(key, make) {
    if (!this.kept.has(key)) this.kept.set(key, make());
    return this.kept.get(key);
  }

  /** @param {string} way */
  colors(way) {
    return this.once(`colors ${way}`, () => coloured(this.data, this.tree, way));
  }

  /** @param {number} item */
  details(item) {
    const amounts = this.once("amounts", () => Object.fromEntries(this.data.values.map(({ name }) => [name, amountsOf(this.data, this.tree, name)])));
    return detailsOf(this.data, this.tree, this.edges, item, amounts);
  }

  /** @param {string} text */
  search(text) {
    return this.once(`search ${text}`, () => found(this.data, this.tree, text));
  }

  /** Makes an item visible: opens all that holds it. @param {number} item */
  reveal(item) {
    this.scene.toggle(pathTo(this.tree, item).slice(0, -1), true);
  }

  /** @param {import("./scene.js").Line} line */
  labelOf(line) {
    return this.once(`line ${line.holder} ${line.from} ${line.to}`, () => lineText(this.data, line.edges));
  }

  /** Boxes that the selected item is connected with, but for those that a line of its level leads to. @param {number} item @returns {{from: any, to: any}[]} */
  far(item) {
    const { tree, edges, scene } = this;
    const drawn = scene.drawn();
    const box = drawn.boxOf.get(item);
    if (!box) return [];
    const [read, given] = [new Set(), new Set()];
    const note = (/** @type {Set<number>} */ ends, /** @type {number} */ node) => {
      const end = edges.itemOf(node);
      if (end < 0 || isBelow(tree, end, item)) return;
      const shown = scene.shownFor(end);
      if (tree.parent[shown] !== tree.parent[item]) ends.add(shown);
    };
    for (const edge of edges.crossing(item)) {
      note(read, edges.src[edge]);
      note(given, edges.dst[edge]);
    }
    const boxes = (/** @type {Set<number>} */ ends) => [...ends].map((end) => drawn.boxOf.get(end)).filter(Boolean).slice(0, MOST_FAR);
    return [...boxes(read).map((from) => ({ from, to: box })), ...boxes(given).map((to) => ({ from: box, to }))];
  }

  /** Rows of the nodes that an item is or holds. @param {number} item @returns {number[]} */
  nodesOf(item) {
    return [...this.edges.nodesIn(item)];
  }

  /** The row of nodes that an item is; null for what is none. @param {number} item */
  nodeOf(item) {
    return item >= 0 && this.tree.kind[item] === KINDS.node ? this.tree.row[item] : null;
  }

  /** The row of parts that an item is; null for what is none. @param {number} item */
  partOf(item) {
    return item >= 0 && this.tree.kind[item] === KINDS.part ? this.tree.row[item] : null;
  }
}
