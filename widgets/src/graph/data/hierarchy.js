// The hierarchy of one graph: its parts with repeats folded, groups of long runs, and the nodes in them.

import { idsOf, rowsOf, textAt, VALUES } from "./data.js";
import { foldRepeats, groupRuns } from "./groups.js";

export const ROOT = 0;
/** Kinds of items. */
export const KINDS = /** @type {const} */ ({ graph: 0, part: 1, repeats: 2, run: 3, node: 4 });

/**
 * Items are numbers: the graph itself is 0, parents come in no order.
 *
 * @typedef {object} Hierarchy
 * @property {string} graph
 * @property {number[]} kind one of KINDS
 * @property {number[]} row row of nodes or parts; of a group that of its first member
 * @property {number[]} parent -1 for the graph
 * @property {number[]} depth
 * @property {number[][]} children empty for nodes
 * @property {number[]} size nodes in it and below
 * @property {Int32Array} ofNode item of each node of the trace; -1 for those that are not shown
 * @property {Int32Array} ofPart likewise of each part
 * @property {Int32Array} own node that stands for a part itself; -1 for none
 * @property {number} hidden nodes of this graph that are left out
 */

/** Makes the hierarchy of a graph, with its parameters and constants or without. @param {import("./data.js").Data} data @param {string} graph @param {boolean} hasValues @returns {Hierarchy} */
export function hierarchyOf(data, graph, hasValues) {
  const { nodes, parts } = data;
  const tree = empty(graph, nodes.count, parts.count);
  const partRows = rowsOf(parts, graph);
  const parents = safeParents(data, partRows);
  for (const row of partRows) tree.ofPart[row] = add(tree, KINDS.part, row);
  /** @type {number[][]} */
  const children = Array.from({ length: tree.kind.length }, () => []);
  const holders = idsOf(nodes.numbers.part_id, parts.count);
  const place = placer(tree, parents, children);
  for (const row of rowsOf(nodes, graph)) {
    const part = holders[row] >= 0 && tree.ofPart[holders[row]] >= 0 ? holders[row] : -1;
    place(part);
    const isOwn = part >= 0 && stands(data, row, part);
    if (isOwn) tree.own[part] = row;
    else if (!hasValues && VALUES.has(textAt(nodes.texts.kind, row) ?? "")) tree.hidden += 1;
    else children[part < 0 ? ROOT : tree.ofPart[part]].push((tree.ofNode[row] = add(tree, KINDS.node, row)));
  }
  for (const row of partRows) place(row);
  grouped(tree, children, parts);
  measure(tree);
  return tree;
}

/** @param {string} graph @param {number} nodes @param {number} parts @returns {Hierarchy} */
function empty(graph, nodes, parts) {
  return {
    graph, kind: [KINDS.graph], row: [-1], parent: [-1], depth: [0], children: [[]], size: [0], hidden: 0,
    ofNode: new Int32Array(nodes).fill(-1), ofPart: new Int32Array(parts).fill(-1), own: new Int32Array(parts).fill(-1),
  };
}

/** @param {Hierarchy} tree @param {number} kind @param {number} row */
function add(tree, kind, row) {
  const item = tree.kind.length;
  tree.kind.push(kind);
  tree.row.push(row);
  tree.parent.push(ROOT);
  tree.depth.push(0);
  tree.children.push([]);
  tree.size.push(0);
  return item;
}

/** Parents of parts by row, -1 at the top; a parent of another graph, or one that the part itself holds, is none. @param {import("./data.js").Data} data @param {number[]} rows */
function safeParents({ parts }, rows) {
  const parents = idsOf(parts.numbers.parent_id, parts.count);
  const isHere = new Uint8Array(parts.count);
  for (const row of rows) isHere[row] = 1;
  const isSafe = new Uint8Array(parts.count);
  for (const row of rows) {
    const path = new Set();
    let at = row;
    while (at >= 0 && isHere[at] && !isSafe[at] && !path.has(at)) {
      path.add(at);
      if (parents[at] < 0 || !isHere[parents[at]] || path.has(parents[at])) parents[at] = -1;
      at = parents[at];
    }
    for (const part of path) isSafe[part] = 1;
  }
  return parents;
}

/** Puts a part among the children of its parent, once, and its parents before it: in the order of their first nodes. @param {Hierarchy} tree @param {Int32Array} parents @param {number[][]} children */
function placer(tree, parents, children) {
  const isPlaced = new Uint8Array(parents.length);
  return (/** @type {number} */ part) => {
    for (let at = part; at >= 0 && !isPlaced[at]; at = parents[at]) {
      isPlaced[at] = 1;
      children[parents[at] < 0 ? ROOT : tree.ofPart[parents[at]]].push(tree.ofPart[at]);
    }
  };
}

/** Tells whether a node of kind module is its part itself. @param {import("./data.js").Data} data @param {number} node @param {number} part */
function stands({ nodes, parts }, node, part) {
  return textAt(nodes.texts.kind, node) === "module" && textAt(nodes.texts.name, node) === textAt(parts.texts.module, part);
}

/** Fills children and parents, with what is repeated or too long in groups. @param {Hierarchy} tree @param {number[][]} children of the graph and its parts @param {import("./data.js").Table} parts */
function grouped(tree, children, parts) {
  const forms = idsOf(parts.numbers.repeat_of, parts.count);
  const formOf = (/** @type {number} */ item) => (tree.kind[item] === KINDS.part ? forms[tree.row[item]] : -1);
  const group = (/** @type {number} */ kind) => (/** @type {number[]} */ members) => {
    const item = add(tree, kind, tree.row[members[0]]);
    tree.children[item] = kind === KINDS.repeats ? groupRuns(members, isLeaf, group(KINDS.run)) : members;
    return item;
  };
  const isLeaf = (/** @type {number} */ item) => tree.kind[item] === KINDS.node || tree.kind[item] === KINDS.run;
  for (let item = 0; item < children.length; item += 1) {
    if (!children[item].length) continue;
    const folded = foldRepeats(children[item], formOf, group(KINDS.repeats));
    tree.children[item] = groupRuns(folded, isLeaf, group(KINDS.run));
  }
}

/** Fills parents, depths and sizes from the children. @param {Hierarchy} tree */
function measure(tree) {
  const order = [ROOT];
  for (let at = 0; at < order.length; at += 1) {
    for (const child of tree.children[order[at]]) {
      tree.parent[child] = order[at];
      tree.depth[child] = tree.depth[order[at]] + 1;
      order.push(child);
    }
  }
  for (const item of order.reverse()) {
    if (tree.kind[item] === KINDS.node) tree.size[item] = 1;
    if (tree.parent[item] >= 0) tree.size[tree.parent[item]] += tree.size[item];
  }
}

/** Returns the group, of repeats or of a long run, that an item is in; the item itself where it is in none. @param {Hierarchy} tree @param {number} item */
export function foldAround(tree, item) {
  const holder = tree.parent[item];
  return tree.kind[holder] === KINDS.repeats || tree.kind[holder] === KINDS.run ? holder : item;
}

/** Returns the items from the top down to an item, without the graph. @param {Hierarchy} tree @param {number} item */
export function pathTo(tree, item) {
  const path = [];
  for (let at = item; at > ROOT; at = tree.parent[at]) path.push(at);
  return path.reverse();
}
