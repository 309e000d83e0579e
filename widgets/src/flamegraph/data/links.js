// Children of each frame, in the order of the view.

/**
 * @typedef {{first: Int32Array, items: Int32Array, roots: Int32Array}} Links
 *   children of frame f are items[first[f + 1]] up to items[first[f + 2]]; those of -1, the roots, come first
 */

/** Links children in the order of their index. @param {import("./frames.js").Frames} frames @returns {Links} */
export function linksOf({ size, parent }) {
  const first = new Int32Array(size + 2);
  for (let frame = 0; frame < size; frame += 1) first[parent[frame] + 2] += 1;
  for (let at = 1; at < first.length; at += 1) first[at] += first[at - 1];
  const next = first.slice();
  const items = new Int32Array(size);
  for (let frame = 0; frame < size; frame += 1) items[next[parent[frame] + 1]++] = frame;
  return { first, items, roots: items.subarray(0, first[1]) };
}

/** Links children widest first; equal ones keep their order. @param {import("./frames.js").Frames} frames @returns {Links} */
export function heavyLinks(frames) {
  const links = linksOf(frames);
  const { first, items } = links;
  for (let at = 0; at + 1 < first.length; at += 1) {
    if (first[at + 1] - first[at] > 1) sortSegment(items, first[at], first[at + 1], frames.width);
  }
  return links;
}

/** @param {Int32Array} items @param {number} from @param {number} to @param {Float64Array} width */
function sortSegment(items, from, to, width) {
  if (to - from > 24) {
    items.subarray(from, to).sort((a, b) => width[b] - width[a] || a - b);
    return;
  }
  for (let at = from + 1; at < to; at += 1) {
    const item = items[at];
    let index = at;
    for (; index > from && width[items[index - 1]] < width[item]; index -= 1) items[index] = items[index - 1];
    items[index] = item;
  }
}

/** @param {Links} links @param {number} frame -1 for the roots */
export function childrenOf({ first, items }, frame) {
  return items.subarray(first[frame + 1], first[frame + 2]);
}
