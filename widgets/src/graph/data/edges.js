// Edges between the items of a hierarchy: each belongs to the level on which its two ends part.

import { idsOf } from "./data.js";
import { KINDS, ROOT } from "./hierarchy.js";

/** What stands for the outside of a level: where its tensors come from, and where they go; -1 is no item. */
export const IN = -2;
export const OUT = -3;

/** @typedef {import("./hierarchy.js").Hierarchy} Hierarchy */
/** Tensors between two items of a level, or its outside. @typedef {{from: number, to: number, edges: number[]}} Link */

export class Edges {
  /** @param {import("./data.js").Table} edges @param {Hierarchy} tree */
  constructor(edges, tree) {
    this.tree = tree;
    const src = (this.src = idsOf(edges.numbers.src, tree.ofNode.length));
    const dst = (this.dst = idsOf(edges.numbers.dst, tree.ofNode.length));
    /** Edges by the item that holds both their ends. @type {Map<number, number[]>} */
    this.inside = new Map();
    /** Edges that leave and enter each node, by its row. */
    this.out = byNode(src, tree.ofNode.length);
    this.in = byNode(dst, tree.ofNode.length);
    for (let edge = 0; edge < edges.count; edge += 1) {
      const [from, to] = [this.itemOf(src[edge]), this.itemOf(dst[edge])];
      if (from < 0 || to < 0 || from === to) continue;
      const holder = holderOf(tree, from, to);
      const list = this.inside.get(holder);
      if (list) list.push(edge);
      else this.inside.set(holder, [edge]);
    }
  }

  /** Returns the item of a node; -1 for none. @param {number} node */
  itemOf(node) {
    return node < 0 ? -1 : this.tree.ofNode[node];
  }

  /** Returns what connects the children of an item with each other and with its outside. @param {number} holder @returns {Link[]} */
  linksIn(holder) {
    /** @type {Map<string, Link>} */
    const links = new Map();
    const add = (/** @type {number} */ from, /** @type {number} */ to, /** @type {number} */ edge) => {
      const key = `${from} ${to}`;
      const link = links.get(key);
      if (link) link.edges.push(edge);
      else links.set(key, { from, to, edges: [edge] });
    };
    for (const edge of this.inside.get(holder) ?? []) {
      add(childAbove(this.tree, this.itemOf(this.src[edge]), holder), childAbove(this.tree, this.itemOf(this.dst[edge]), holder), edge);
    }
    if (holder !== ROOT) for (const child of this.tree.children[holder]) this.outside(child, holder, add);
    return [...links.values()];
  }

  /** Edges of which at least one end is an item or in it. @param {number} item */
  *crossing(item) {
    for (const node of this.nodesIn(item)) {
      yield* this.in.of(node);
      yield* this.out.of(node);
    }
  }

  /** Returns the rows of the nodes in an item and below. @param {number} item */
  nodesIn(item) {
    return leaves(this.tree, item);
  }

  /** Calls `add` for the edges that cross the border of a holder at a child of it. @param {number} child @param {number} holder @param {(from: number, to: number, edge: number) => void} add */
  outside(child, holder, add) {
    const { tree } = this;
    for (const node of leaves(tree, child)) {
      for (const edge of this.in.of(node)) {
        const from = this.itemOf(this.src[edge]);
        if (this.src[edge] < 0 || (from >= 0 && !isBelow(tree, from, holder))) add(IN, child, edge);
      }
      for (const edge of this.out.of(node)) {
        const to = this.itemOf(this.dst[edge]);
        if (to >= 0 && !isBelow(tree, to, holder)) add(child, OUT, edge);
      }
    }
  }
}

/** Groups edges by the node at one of their ends. @param {Int32Array} ends @param {number} count */
function byNode(ends, count) {
  const starts = new Int32Array(count + 1);
  for (const node of ends) if (node >= 0) starts[node + 1] += 1;
  for (let node = 0; node < count; node += 1) starts[node + 1] += starts[node];
  const next = starts.slice();
  const edges = new Int32Array(starts[count]);
  for (let edge = 0; edge < ends.length; edge += 1) if (ends[edge] >= 0) edges[next[ends[edge]]++] = edge;
  return { of: (/** @type {number} */ node) => edges.subarray(starts[node], starts[node + 1]) };
}

/** Returns the item that holds two others, neither of which holds the other. @param {Hierarchy} tree @param {number} first @param {number} second */
function holderOf({ parent, depth }, first, second) {
  let [a, b] = [first, second];
  while (a !== b) {
    if (depth[a] >= depth[b]) a = parent[a];
    else b = parent[b];
  }
  return a;
}

/** Returns the child of `holder` that an item below it is in. @param {Hierarchy} tree @param {number} item @param {number} holder */
export function childAbove({ parent }, item, holder) {
  let at = item;
  while (parent[at] !== holder) at = parent[at];
  return at;
}

/** Tells whether an item is another or below it. @param {Hierarchy} tree @param {number} item @param {number} holder */
export function isBelow({ parent, depth }, item, holder) {
  let at = item;
  while (depth[at] > depth[holder]) at = parent[at];
  return at === holder;
}

/** Returns the nodes in an item and below, in the order of the levels. @param {Hierarchy} tree @param {number} item @returns {Generator<number>} */
export function* leaves(tree, item) {
  const waiting = [item];
  while (waiting.length) {
    const at = /** @type {number} */ (waiting.pop());
    if (tree.kind[at] === KINDS.node) yield tree.row[at];
    for (let child = tree.children[at].length - 1; child >= 0; child -= 1) waiting.push(tree.children[at][child]);
  }
}
