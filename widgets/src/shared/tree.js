// The module tree as a list of nodes: which are visible, and where keys and typed letters lead.

/**
 * @typedef {{key: string, name: string, depth: number, hasChildren: boolean}} Node parents before their children
 */

/**
 * Returns the visible nodes: those whose holders are all open.
 * @template {Node} T
 * @param {T[]} nodes
 * @param {Set<string>} open keys of open nodes
 * @returns {T[]}
 */
export function visibleNodes(nodes, open) {
  /** @type {T[]} */
  const visible = [];
  let closedDepth = Infinity;
  for (const node of nodes) {
    if (node.depth > closedDepth) continue;
    closedDepth = node.hasChildren && !open.has(node.key) ? node.depth : Infinity;
    visible.push(node);
  }
  return visible;
}

/**
 * Returns what a key does on a visible node: {go: index}, {open: key}, {close: key}, or null.
 * @param {string} key
 * @param {number} at
 * @param {Node[]} visible
 * @param {Set<string>} open
 * @returns {{go?: number, open?: string, close?: string} | null}
 */
export function treeKey(key, at, visible, open) {
  const node = visible[at];
  const isOpen = node.hasChildren && open.has(node.key);
  switch (key) {
    case "ArrowDown":
      return { go: Math.min(at + 1, visible.length - 1) };
    case "ArrowUp":
      return { go: Math.max(at - 1, 0) };
    case "Home":
      return { go: 0 };
    case "End":
      return { go: visible.length - 1 };
    case "ArrowRight":
      return isOpen ? { go: at + 1 } : node.hasChildren ? { open: node.key } : null;
    case "ArrowLeft":
      return isOpen ? { close: node.key } : { go: parentOf(at, visible) };
    default:
      return key.length === 1 && key.trim() ? { go: typeAhead(key, at, visible) } : null;
  }
}

/** Returns the index of the node that holds this one; its own for a root. @param {number} at @param {Node[]} visible */
export function parentOf(at, visible) {
  let index = at;
  while (index > 0 && visible[index].depth >= visible[at].depth) index -= 1;
  return visible[index].depth < visible[at].depth ? index : at;
}

/** Returns the index of the next node, around the end, whose name starts with a letter. @param {string} letter @param {number} at @param {Node[]} visible */
export function typeAhead(letter, at, visible) {
  for (let step = 1; step <= visible.length; step += 1) {
    const index = (at + step) % visible.length;
    if (visible[index].name.toLowerCase().startsWith(letter.toLowerCase())) return index;
  }
  return at;
}
