// Coordinates of a level: its ranks below each other, every box near what it is connected with, none over another.

import { neighbors } from "./layers.js";

export const GAPS = { beside: 18, below: 30, bend: 10 };
const SWEEPS = 4;
/** How much more a bend wants to be straight below another than a box does. */
const STRAIGHT = 6;
/** How much a box minds where a long line of it goes, beside the boxes next to it. */
const LOOSE = 0.05;

/**
 * @typedef {{width: number, height: number}} Size
 * @typedef {{width: number, height: number, x: number[], y: number[], paths: [number, number][][]}} Placed left and top
 *   of each box, and the points of each line from the bottom of its upper box to the top of its lower one
 */

/** @param {import("./layers.js").Layers} layers @param {Size[]} sizes of the boxes @returns {Placed} */
export function placed(layers, sizes) {
  const isLoose = loose(layers);
  const tied = layers.rows.map((row) => row.filter((at) => !isLoose[at]));
  const center = centers(layers, tied, sizes);
  const { top, heights, bottom } = heightsOf(tied, layers, sizes);
  const x = sizes.map((size, box) => center[box] - size.width / 2);
  const y = sizes.map((size, box) => top[layers.rank[box]] + (heights[layers.rank[box]] - size.height) / 2);
  const left = tied.flat().reduce((least, at) => Math.min(least, at < layers.count ? x[at] : center[at]), Infinity);
  const right = tied.flat().reduce((most, at) => Math.max(most, at < layers.count ? x[at] + sizes[at].width : center[at]), -Infinity);
  const shift = Number.isFinite(left) ? -left : 0;
  for (let box = 0; box < layers.count; box += 1) x[box] += shift;
  const middle = (/** @type {number} */ at) => center[at] + shift;
  const paths = layers.paths.map((path) => pathOf(path, { layers, top, heights, y, sizes, middle }));
  const size = shelve(isLoose, sizes, { x, y }, { width: Math.max(right + shift, 0), height: bottom });
  return { ...size, x, y, paths };
}

/** Finds boxes that nothing is connected with. @param {import("./layers.js").Layers} layers */
function loose({ count, rank, steps }) {
  const isLoose = rank.map((_, at) => at < count);
  for (const [from, to] of steps) isLoose[from] = isLoose[to] = false;
  return isLoose;
}

/** Centers across. @param {import("./layers.js").Layers} layers @param {number[][]} rows @param {Size[]} sizes */
function centers(layers, rows, sizes) {
  const { count, rank, steps } = layers;
  const width = (/** @type {number} */ at) => (at < count ? sizes[at].width + GAPS.beside : GAPS.bend);
  const center = new Array(rank.length).fill(0);
  for (const row of rows) {
    let at = -row.reduce((sum, box) => sum + width(box), 0) / 2;
    for (const box of row) center[box] = (at += width(box)) - width(box) / 2;
  }
  const beside = [neighbors(rank.length, steps, 1), neighbors(rank.length, steps, 0)];
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const near = beside[sweep % 2];
    for (const row of sweep % 2 ? [...rows].reverse() : rows) {
      const wanted = row.map((box) => (near[box].length ? mean(near[box], center, (neighbor) => (box < count && neighbor >= count ? LOOSE : 1)) : center[box]));
      const weights = row.map((box) => (box >= count && near[box].every((neighbor) => neighbor >= count) ? STRAIGHT : near[box].length ? 1 : 0.1));
      apart(wanted, weights, row.map(width)).forEach((value, index) => (center[row[index]] = value));
    }
  }
  return center;
}

/** Centers nearest to the wanted ones, by weighted squares, that keep their order and the widths between them. @param {number[]} wanted @param {number[]} weights @param {number[]} widths */
export function apart(wanted, weights, widths) {
  let offset = 0;
  const offsets = widths.map((width, index) => (offset += index ? (widths[index - 1] + width) / 2 : 0));
  /** @type {{sum: number, weight: number, count: number}[]} */
  const blocks = [];
  wanted.forEach((value, index) => {
    let block = { sum: (value - offsets[index]) * weights[index], weight: weights[index], count: 1 };
    for (let last = blocks.at(-1); last && last.sum / last.weight >= block.sum / block.weight; last = blocks.at(-1)) {
      blocks.pop();
      block = { sum: last.sum + block.sum, weight: last.weight + block.weight, count: last.count + block.count };
    }
    blocks.push(block);
  });
  return blocks.flatMap(({ sum, weight, count }) => new Array(count).fill(sum / weight)).map((value, index) => value + offsets[index]);
}

/** Returns the weighted mean of the centers of boxes. @param {number[]} boxes @param {number[]} center @param {(box: number) => number} weightOf */
function mean(boxes, center, weightOf) {
  const weights = boxes.map(weightOf);
  return boxes.reduce((sum, box, index) => sum + center[box] * weights[index], 0) / weights.reduce((sum, weight) => sum + weight, 0);
}

/** Tops and heights of the ranks. @param {number[][]} rows @param {import("./layers.js").Layers} layers @param {Size[]} sizes */
function heightsOf(rows, { count }, sizes) {
  const heights = rows.map((row) => row.reduce((most, at) => Math.max(most, at < count ? sizes[at].height : 0), 0));
  let bottom = 0;
  const top = heights.map((height, rank) => {
    const start = rows[rank].length && bottom ? bottom + GAPS.below : bottom;
    bottom = start + height;
    return start;
  });
  return { top, heights, bottom };
}

/** Returns the points of a line; along a rank that it passes it goes straight down. @param {number[]} path @param {any} level @returns {[number, number][]} */
function pathOf(path, { layers, top, heights, y, sizes, middle }) {
  return path.flatMap((at, index) => {
    if (index === 0) return [[middle(at), y[at] + sizes[at].height]];
    if (index === path.length - 1) return [[middle(at), y[at]]];
    const rank = layers.rank[at];
    return /** @type {[number, number][]} */ ([[middle(at), top[rank]], [middle(at), top[rank] + heights[rank]]]);
  });
}

/** Puts loose boxes in rows below the others, about as wide as high; the size of it all. @param {boolean[]} isLoose @param {Size[]} sizes @param {{x: number[], y: number[]}} corner @param {Size} size */
function shelve(isLoose, sizes, corner, size) {
  const boxes = sizes.map((_, box) => box).filter((box) => isLoose[box]);
  if (!boxes.length) return size;
  const area = boxes.reduce((sum, box) => sum + (sizes[box].width + GAPS.beside) * (sizes[box].height + GAPS.beside), 0);
  const room = Math.max(size.width, Math.sqrt(area * 1.6), ...boxes.map((box) => sizes[box].width));
  let [left, top, high, width] = [0, size.height ? size.height + GAPS.below : 0, 0, size.width];
  for (const box of boxes) {
    if (left > 0 && left + sizes[box].width > room) [left, top, high] = [0, top + high + GAPS.beside, 0];
    corner.x[box] = left;
    corner.y[box] = top;
    left += sizes[box].width + GAPS.beside;
    high = Math.max(high, sizes[box].height);
    width = Math.max(width, left - GAPS.beside);
  }
  return { width, height: top + high };
}
