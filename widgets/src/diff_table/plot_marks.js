// Marks of the plots of a difference: rectangles, dots, lines and texts, with what each of them says.

import { general } from "../shared/numbers.js";

/**
 * @typedef {{kind: "histogram" | "scatter" | "heat_map", title: string, description: string, x_title: string, y_title: string, [name: string]: any}} Plot as nbkit/views/plots/difference.py makes it
 * @typedef {{x: number, y: number, width: number, height: number}} Box
 * @typedef {{tag: "rect" | "circle" | "line" | "text", kind: string, attributes: Record<string, string | number>, text?: string}} Mark
 * @typedef {{mark: Mark, label: string, hit: Box}} Item a mark of data, what it stands for, and where a pointer finds it
 * @typedef {{low: number, high: number, from: number, to: number}} Scale values and the pixels that they lie at
 * @typedef {{x: [number, number], y: [number, number]}} Range what of a plot is shown
 * @typedef {{axes: Mark[], items: Item[], lines: Mark[], perRow: number, across: Scale, up: Scale, area: Box}} Drawing
 */

const MARGIN = { left: 58, right: 10, top: 8, bottom: 40 };
const TICKS = 5;
const RADIUS = 2.5;
/** Opacity of a cell of no error, of half the largest and of the largest. */
const OPACITY = [0.06, 0.5, 1];

/** Draws a plot, or the range of it that was zoomed to. @param {Plot} plot @param {number} width @param {number} height @param {Range | null} [range] @returns {Drawing} */
export function plotMarks(plot, width, height, range = null) {
  const { x, y } = range ?? extents(plot);
  const area = { x: MARGIN.left, y: MARGIN.top, width: width - MARGIN.left - MARGIN.right, height: height - MARGIN.top - MARGIN.bottom };
  const [top, bottom] = [area.y, area.y + area.height];
  const isTurned = plot.kind === "heat_map";
  const across = { low: x[0], high: x[1], from: area.x, to: area.x + area.width };
  const up = { low: y[0], high: y[1], from: isTurned ? top : bottom, to: isTurned ? bottom : top };
  const items = ITEMS[plot.kind](plot, across, up).filter(({ hit }) => overlaps(hit, area));
  return { axes: axes(plot, across, up, area), items, lines: lines(plot, across, up), perRow: isTurned ? cellsInView(plot, x) : 1, across, up, area };
}

/** Returns the lowest and highest x and y of a plot. @param {Plot} plot @returns {Range} */
export function extents(plot) {
  if (plot.kind === "heat_map") {
    const [high, wide] = plot.cell;
    return { x: [0, (plot.cells[0]?.length || 1) * wide], y: [0, (plot.cells.length || 1) * high] };
  }
  if (plot.kind === "histogram") {
    const { edges, counts } = plot;
    return { x: counts.length ? [edges[0], edges.at(-1)] : [0, 1], y: [0, counts.reduce((/** @type {number} */ most, /** @type {number} */ each) => Math.max(most, each), 1)] };
  }
  const known = points(plot).flat();
  const [low, high] = known.length ? [Math.min(...known), Math.max(...known)] : [0, 1];
  return { x: padded(points(plot).map(([expected]) => expected), low, high), y: padded(points(plot).map(([, actual]) => actual), low, high) };
}

/** Returns round numbers between two, few enough to read. @param {number} low @param {number} high */
export function ticks(low, high) {
  const rough = (high - low) / TICKS;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * /** @type {number} */ ([1, 2, 5, 10].find((factor) => factor * power >= rough));
  const numbers = [];
  // + 0 makes 0 of -0.
  for (let number = Math.ceil(low / step); number * step <= high; number += 1) numbers.push(number * step + 0);
  return numbers;
}

/** Returns the item below or next to a place, null where none is near. @param {Item[]} items @param {number} x @param {number} y @param {number} [near] */
export function nearest(items, x, y, near = 12) {
  let best = null, least = near;
  for (const item of items) {
    const { hit } = item;
    const away = Math.hypot(Math.max(hit.x - x, x - hit.x - hit.width, 0), Math.max(hit.y - y, y - hit.y - hit.height, 0));
    if (away < least || (best === null && away <= least)) [best, least] = [item, away];
  }
  return best;
}

/** Returns the value at a pixel. @param {number} pixel @param {Scale} scale */
export function valueAt(pixel, { low, high, from, to }) {
  return low + ((pixel - from) / (to - from)) * (high - low);
}

/** Pairs of expected and actual values that are known. @param {Plot} plot @returns {[number, number][]} */
function points({ expected, actual }) {
  const pairs = expected.map((/** @type {number | null} */ value, /** @type {number} */ index) => [value, actual[index]]);
  return pairs.filter((/** @type {(number | null)[]} */ pair) => !pair.includes(null));
}

/** @param {number[]} values @param {number} low @param {number} high ends where there are no values @returns {[number, number]} */
function padded(values, low, high) {
  const [first, last] = values.length ? [Math.min(...values), Math.max(...values)] : [low, high];
  const pad = (last - first) * 0.04 || Math.abs(last) * 0.04 || 1;
  return [first - pad, last + pad];
}

/** @param {Box} left @param {Box} right */
function overlaps(left, right) {
  return left.x + left.width > right.x && left.x < right.x + right.width && left.y + left.height > right.y && left.y < right.y + right.height;
}

/** @param {number} value @param {Scale} scale */
function at(value, { low, high, from, to }) {
  return Math.round((from + ((value - low) / (high - low)) * (to - from)) * 100) / 100;
}

/** Returns how many cells of a row are in view. @param {Plot} plot @param {[number, number]} range */
function cellsInView({ cells, cell: [, wide] }, [low, high]) {
  return Math.min(Math.ceil(high / wide), cells[0]?.length ?? 0) - Math.max(Math.floor(low / wide), 0);
}

/** @type {Record<string, (plot: Plot, across: Scale, up: Scale) => Item[]>} */
const ITEMS = {
  histogram({ edges, counts }, across, up) {
    return counts.map((/** @type {number} */ count, /** @type {number} */ index) => {
      const [left, right, top] = [at(edges[index], across), at(edges[index + 1], across), at(count, up)];
      const [low, high] = [edges[index], edges[index + 1]].map((power) => general(10 ** power, 2));
      const attributes = { x: left + 0.5, y: top, width: Math.max(right - left - 1, 0.5), height: Math.max(up.from - top, 0) };
      // A bar may be flat: all of its column answers a pointer.
      const hit = { x: left, y: Math.min(up.from, up.to), width: right - left, height: Math.abs(up.to - up.from) };
      return { mark: { tag: "rect", kind: "bar", attributes }, label: `${low} to ${high}: ${count} ${count === 1 ? "element" : "elements"}`, hit };
    });
  },
  scatter(plot, across, up) {
    return points(plot).map(([expected, actual]) => {
      const [cx, cy] = [at(expected, across), at(actual, up)];
      const hit = { x: cx - RADIUS, y: cy - RADIUS, width: 2 * RADIUS, height: 2 * RADIUS };
      return { mark: { tag: "circle", kind: "point", attributes: { cx, cy, r: RADIUS } }, label: `expected ${general(expected, 6)}, actual ${general(actual, 6)}`, hit };
    });
  },
  heat_map({ cells, cell: [high, wide], largest }, across, up) {
    const [width, height] = [at(wide, across) - at(0, across), at(high, up) - at(0, up)];
    return cells.flatMap((/** @type {(number | null)[]} */ row, /** @type {number} */ down) => row.map((value, right) => {
      const box = { x: at(right * wide, across), y: at(down * high, up), width, height };
      // NaN or Inf on one side has the color of the worst.
      const share = value === null ? 1 : largest ? value / largest : 0;
      const label = `row ${down * high}, column ${right * wide}: ${value === null ? "NaN or Inf on one side" : general(value, 3)}`;
      return { mark: { tag: "rect", kind: "cell", attributes: { ...box, "fill-opacity": opacity(share) } }, label, hit: box };
    }));
  },
};

/** Makes the line where actual and expected are equal. @param {Plot} plot @param {Scale} across @param {Scale} up @returns {Mark[]} */
function lines(plot, across, up) {
  if (plot.kind !== "scatter") return [];
  const [low, high] = [Math.min(across.low, up.low), Math.max(across.high, up.high)];
  return [{ tag: "line", kind: "equal", attributes: { x1: at(low, across), y1: at(low, up), x2: at(high, across), y2: at(high, up) } }];
}

/** @param {number} share 0 to 1 */
function opacity(share) {
  const [low, middle, high] = OPACITY;
  return general(share < 0.5 ? low + 2 * share * (middle - low) : middle + (2 * share - 1) * (high - middle), 3);
}

/** Makes lines, numbers and titles of both axes. @param {Plot} plot @param {Scale} across @param {Scale} up @param {Box} area @returns {Mark[]} */
function axes(plot, across, up, area) {
  const [left, right, top, bottom] = [area.x, area.x + area.width, area.y, area.y + area.height];
  const text = (/** @type {Record<string, string | number>} */ attributes, /** @type {string} */ words) => /** @type {Mark} */ ({ tag: "text", kind: "tick", attributes, text: words });
  const line = (/** @type {Record<string, number>} */ attributes) => /** @type {Mark} */ ({ tag: "line", kind: "grid", attributes });
  const below = plot.kind === "histogram" ? powers(across) : labeled(across);
  return [
    ...below.flatMap(([value, words]) => [
      line({ x1: at(value, across), y1: top, x2: at(value, across), y2: bottom }), text({ x: at(value, across), y: bottom + 14, "text-anchor": "middle" }, words)]),
    ...labeled(up).flatMap(([value, words]) => [
      line({ x1: left, y1: at(value, up), x2: right, y2: at(value, up) }), text({ x: left - 5, y: at(value, up) + 4, "text-anchor": "end" }, words)]),
    text({ x: (left + right) / 2, y: bottom + 34, "text-anchor": "middle" }, plot.x_title),
    text({ x: 0, y: 0, "text-anchor": "middle", transform: `translate(11 ${(top + bottom) / 2}) rotate(-90)` }, plot.y_title),
  ];
}

/** @param {Scale} scale @returns {[number, string][]} */
function labeled({ low, high }) {
  return ticks(low, high).map((value) => [value, general(value, 4)]);
}

/** Returns the ticks of a decimal logarithm: powers of ten, or other numbers where there are too few. @param {Scale} scale @returns {[number, string][]} */
function powers({ low, high }) {
  const whole = ticks(low, high).filter(Number.isInteger);
  return whole.length ? whole.map((power) => [power, `1e${power}`]) : ticks(low, high).map((power) => [power, general(10 ** power, 3)]);
}
