// The scene: boxes and lines of what is open, each level laid out by itself and kept until something in it changes.

import { IN, OUT } from "../data/edges.js";
import { KINDS, ROOT } from "../data/hierarchy.js";
import { layersOf } from "./layers.js";
import { placed } from "./placing.js";
import { cut, subtitleOf, titleOf } from "../data/words.js";

/** Sizes in pixels at 1:1. */
const PAD = 14;
export const HEAD = 40;
const HEIGHT = 40;
const [NARROWEST, TEXT_PAD] = [70, 26];
const PILL = { width: 44, height: 18 };

/**
 * A box: an item, or the inputs (IN) or outputs (OUT) of the open item that `holder` is. A line: what connects two of one
 * level; points run from the upper to the lower box, and `isUp` and `isDown` say where its tensors go.
 *
 * @typedef {{item: number, holder: number, x: number, y: number, width: number, height: number, isOpen: boolean,
 *   title: string, subtitle: string, canOpen: boolean}} Box
 * @typedef {{from: number, to: number, holder: number, points: [number, number][], edges: number[], isUp: boolean, isDown: boolean}} Line
 * @typedef {{items: number[], pairs: {from: number, to: number, edges: number[], isUp: boolean, isDown: boolean}[], layers: import("./layers.js").Layers}} Level
 * @typedef {{width: number, height: number, boxes: Box[], lines: Line[], boxOf: Map<number, Box>}} Drawn
 */

export class Scene {
  /** @param {import("../data/data.js").Data} data @param {import("../data/hierarchy.js").Hierarchy} tree @param {import("../data/edges.js").Edges} edges @param {{title: number, subtitle: number}} letter widths */
  constructor(data, tree, edges, letter) {
    this.data = data;
    this.tree = tree;
    this.edges = edges;
    this.letter = letter;
    /** Items that show what is in them. @type {Set<number>} */
    this.open = new Set([ROOT]);
    /** @type {Map<number, Level>} */
    this.levels = new Map();
    /** @type {Map<number, import("./placing.js").Placed>} */
    this.placings = new Map();
    /** @type {Map<number, {width: number, height: number, title: string, subtitle: string}>} */
    this.closedBoxes = new Map();
    /** @type {Drawn | null} */
    this.last = null;
  }

  /** Tells whether an item can be opened. @param {number} item */
  holds(item) {
    return this.tree.children[item].length > 0;
  }

  /** Opens or closes items. @param {number[]} items @param {boolean} isOpen */
  toggle(items, isOpen) {
    for (const item of items) {
      if (!this.holds(item) || this.open.has(item) === isOpen) continue;
      if (isOpen) this.open.add(item);
      else this.open.delete(item);
      for (let at = item; at >= 0; at = this.tree.parent[at]) this.placings.delete(at);
      this.last = null;
    }
  }

  /** Tells whether an item can be seen: all that hold it are open. @param {number} item */
  isShown(item) {
    for (let at = this.tree.parent[item]; at >= 0; at = this.tree.parent[at]) if (!this.open.has(at)) return false;
    return true;
  }

  /** Returns the item itself, else the closed one around it. @param {number} item */
  shownFor(item) {
    let shown = item;
    for (let at = item; at >= 0; at = this.tree.parent[at]) if (at !== item && !this.open.has(at)) shown = at;
    return shown;
  }

  /** Returns what is connected on the level below an item. @param {number} holder @returns {Level} */
  level(holder) {
    const known = this.levels.get(holder);
    if (known) return known;
    const links = this.edges.linksIn(holder);
    const has = (/** @type {number} */ end) => (links.some(({ from, to }) => from === end || to === end) ? [end] : []);
    // The outputs come last: where lines make a cycle, what comes first is above.
    const items = [...has(IN), ...this.tree.children[holder], ...has(OUT)];
    const indexOf = new Map(items.map((item, index) => [item, index]));
    const pairs = joined(links);
    const layers = layersOf(items.length, pairs.map(({ from, to }) => [/** @type {number} */ (indexOf.get(from)), /** @type {number} */ (indexOf.get(to))]));
    const level = { items, pairs, layers };
    this.levels.set(holder, level);
    return level;
  }

  /** @param {number} holder */
  placing(holder) {
    const known = this.placings.get(holder);
    if (known) return known;
    const { items, layers } = this.level(holder);
    const placing = placed(layers, items.map((item) => this.sizeOf(item)));
    this.placings.set(holder, placing);
    return placing;
  }

  /** @param {number} item @returns {{width: number, height: number}} */
  sizeOf(item) {
    if (item < 0) return PILL;
    const closed = this.closedBox(item);
    if (!this.open.has(item)) return closed;
    const { width, height } = this.placing(item);
    return { width: Math.max(width, closed.width) + 2 * PAD, height: height + HEAD + PAD };
  }

  /** @param {number} item */
  closedBox(item) {
    const known = this.closedBoxes.get(item);
    if (known) return known;
    const [title, subtitle] = [cut(titleOf(this.data, this.tree, item)), cut(subtitleOf(this.data, this.tree, item), 60)];
    const wide = Math.max(title.length * this.letter.title, subtitle.length * this.letter.subtitle);
    const mark = this.tree.kind[item] === KINDS.node ? 0 : 16;
    const box = { title, subtitle, width: Math.max(Math.ceil(wide) + TEXT_PAD + mark, NARROWEST), height: subtitle ? HEIGHT : HEIGHT - 14 };
    this.closedBoxes.set(item, box);
    return box;
  }

  /** Returns everything that is open, in pixels at 1:1. @returns {Drawn} */
  drawn() {
    if (this.last) return this.last;
    const { width, height } = this.placing(ROOT);
    /** @type {Drawn} */
    const drawn = { width, height, boxes: [], lines: [], boxOf: new Map() };
    this.draw(ROOT, 0, 0, drawn);
    this.last = drawn;
    return drawn;
  }

  /** @param {number} holder @param {number} left @param {number} top @param {Drawn} drawn */
  draw(holder, left, top, drawn) {
    const { items, pairs, layers } = this.level(holder);
    const { x, y, paths } = this.placing(holder);
    items.forEach((item, index) => {
      const isOpen = this.open.has(item);
      const words = item < 0 ? { title: item === IN ? "in" : "out", subtitle: "" } : this.closedBox(item);
      const { width, height } = this.sizeOf(item);
      const box = { item, holder, x: left + x[index], y: top + y[index], width, height, isOpen, title: words.title, subtitle: words.subtitle, canOpen: item >= 0 && this.holds(item) };
      drawn.boxes.push(box);
      if (item >= 0) drawn.boxOf.set(item, box);
      if (isOpen) this.draw(item, box.x + PAD + Math.max(0, (width - 2 * PAD - this.placing(item).width) / 2), box.y + HEAD, drawn);
    });
    pairs.forEach((pair, index) => {
      const ends = items[layers.paths[index][0]] === pair.from ? pair : { ...pair, from: pair.to, to: pair.from, isUp: pair.isDown, isDown: pair.isUp };
      drawn.lines.push({ ...ends, holder, points: paths[index].map(([a, b]) => [a + left, b + top]) });
    });
  }
}

/** Merges links of both directions between two items in one, as down from the first. @param {import("../data/edges.js").Link[]} links */
function joined(links) {
  /** @type {Map<string, {from: number, to: number, edges: number[], isUp: boolean, isDown: boolean}>} */
  const pairs = new Map();
  for (const { from, to, edges } of links) {
    const back = pairs.get(`${to} ${from}`);
    if (back) Object.assign(back, { isUp: true, edges: [...back.edges, ...edges] });
    else pairs.set(`${from} ${to}`, { from, to, edges, isUp: false, isDown: true });
  }
  return [...pairs.values()];
}
