// What the plots of a difference consist of when a page draws them itself: rectangles, dots, lines and texts.

import { general } from "../shared/numbers.js";

/**
 * @typedef {{tag: "rect" | "circle" | "line" | "text", attributes: Record<string, string | number>, text?: string, title?: string}} Mark
 * @typedef {{low: number, high: number, from: number, to: number}} Scale values and the pixels that they lie at
 */

const MARGIN = { left: 58, right: 10, top: 8, bottom: 40 };
const TICKS = 5;
const MARKER = 2.5;
/** Opacity of a cell of no error, of half the largest and of the largest. */
const OPACITY = [0.06, 0.5, 1];

/** The marks of a plotly figure of nbkit/views/plots/difference.py. @param {any[]} data @param {any} layout @param {number} width @param {number} height @returns {Mark[]} */
export function plotMarks(data, layout, width, height) {
  const [x, y] = extents(data);
  const across = { low: x[0], high: x[1], from: MARGIN.left, to: width - MARGIN.right };
  const [top, bottom] = [MARGIN.top, height - MARGIN.bottom];
  const isTurned = layout.yaxis?.autorange === "reversed";
  const up = { low: y[0], high: y[1], from: isTurned ? top : bottom, to: isTurned ? bottom : top };
  const drawn = data.flatMap((trace) => DRAW[trace.type === "scatter" ? trace.mode : trace.type](trace, across, up));
  return [...axes(layout, across, up, width, height), ...drawn];
}

/** Round numbers between two, few enough to read. @param {number} low @param {number} high */
export function ticks(low, high) {
  const rough = (high - low) / TICKS;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * /** @type {number} */ ([1, 2, 5, 10].find((factor) => factor * power >= rough));
  const found = [];
  // + 0 makes 0 of -0.
  for (let number = Math.ceil(low / step); number * step <= high; number += 1) found.push(number * step + 0);
  return found;
}

/** Lowest and highest x and y of what is drawn. @param {any[]} data @returns {[number, number][]} */
function extents(data) {
  const [first] = data;
  if (first.type === "heatmap") return [[0, (first.z[0]?.length ?? 0) * first.dx], [0, first.z.length * first.dy]];
  if (first.type === "bar") {
    const half = barWidth(first) / 2;
    return [[first.x[0] - half, first.x.at(-1) + half], [0, Math.max(...first.y, 1)]].map(([low, high]) => [low || 0, high || 1]);
  }
  return ["x", "y"].map((name) => padded(data.flatMap((trace) => trace[name]).filter((value) => value !== null)));
}

/** @param {number[]} values @returns {[number, number]} */
function padded(values) {
  const [low, high] = [values.reduce((one, other) => Math.min(one, other)), values.reduce((one, other) => Math.max(one, other))];
  const pad = (high - low) * 0.04 || Math.abs(high) * 0.04 || 1;
  return [low - pad, high + pad];
}

/** @param {number} value @param {Scale} scale */
function at(value, { low, high, from, to }) {
  return Math.round((from + ((value - low) / (high - low)) * (to - from)) * 100) / 100;
}

/** @param {any} bars */
function barWidth({ x }) {
  return x.length > 1 ? x[1] - x[0] : 1;
}

/** @type {Record<string, (trace: any, across: Scale, up: Scale) => Mark[]>} */
const DRAW = {
  bar(trace, across, up) {
    const half = (barWidth(trace) / 2) * 0.95;
    return trace.x.map((/** @type {number} */ center, /** @type {number} */ place) => {
      const [left, top] = [at(center - half, across), at(trace.y[place], up)];
      const attributes = { x: left, y: top, width: at(center + half, across) - left, height: up.from - top, fill: trace.marker.color };
      return { tag: "rect", attributes, title: `${trace.customdata[place]}: ${trace.y[place]} elements` };
    });
  },
  markers(trace, across, up) {
    const points = trace.x.map((/** @type {number | null} */ x, /** @type {number} */ place) => [x, trace.y[place]]);
    const known = points.filter(([x, y]) => x !== null && y !== null);
    return known.map(([x, y]) => ({
      tag: "circle", attributes: { cx: at(x, across), cy: at(y, up), r: MARKER, fill: trace.marker.color, "fill-opacity": trace.marker.opacity },
      title: `expected ${general(x, 6)}, actual ${general(y, 6)}`,
    }));
  },
  lines({ x, y, line }, across, up) {
    const attributes = { x1: at(x[0], across), y1: at(y[0], up), x2: at(x[1], across), y2: at(y[1], up), stroke: line.color, "stroke-width": line.width };
    return [{ tag: "line", attributes }];
  },
  heatmap({ z, dx, dy, zmax, colorscale }, across, up) {
    const [width, height] = [at(dx, across) - at(0, across), Math.abs(at(dy, up) - at(0, up))];
    return z.flatMap((/** @type {number[]} */ row, /** @type {number} */ down) => row.map((value, right) => ({
      tag: "rect", title: `row ${down * dy}, column ${right * dx}: ${general(value, 3)}`,
      attributes: { x: at(right * dx, across), y: at(down * dy, up), width, height, fill: colorscale.at(-1)[1], "fill-opacity": opacity(value / zmax) },
    })));
  },
};

/** @param {number} share 0 to 1 */
function opacity(share) {
  const [low, middle, high] = OPACITY;
  return general(share < 0.5 ? low + 2 * share * (middle - low) : middle + (2 * share - 1) * (high - middle), 3);
}

/** Lines, numbers and titles of both axes. @param {any} layout @param {Scale} across @param {Scale} up @param {number} width @param {number} height @returns {Mark[]} */
function axes({ xaxis, yaxis, font }, across, up, width, height) {
  const [top, bottom] = [MARGIN.top, height - MARGIN.bottom];
  const stroke = xaxis.gridcolor;
  const text = (/** @type {object} */ attributes, /** @type {string} */ words) => (
    /** @type {Mark} */ ({ tag: "text", attributes: { fill: font.color, "font-size": font.size, "font-family": font.family, ...attributes }, text: words }));
  const line = (/** @type {Record<string, number>} */ ends) => /** @type {Mark} */ ({ tag: "line", attributes: { ...ends, stroke, "stroke-width": 1 } });
  const marksX = xaxis.tickvals?.map((/** @type {number} */ value, /** @type {number} */ place) => [value, xaxis.ticktext[place]]) ?? labelled(across);
  return [
    ...marksX.flatMap((/** @type {[number, string]} */ [value, words]) => [
      line({ x1: at(value, across), y1: top, x2: at(value, across), y2: bottom }), text({ x: at(value, across), y: bottom + 14, "text-anchor": "middle" }, words)]),
    ...labelled(up).flatMap(([value, words]) => [
      line({ x1: MARGIN.left, y1: at(value, up), x2: width - MARGIN.right, y2: at(value, up) }), text({ x: MARGIN.left - 5, y: at(value, up) + 4, "text-anchor": "end" }, words)]),
    text({ x: (MARGIN.left + width - MARGIN.right) / 2, y: height - 6, "text-anchor": "middle" }, xaxis.title.text),
    text({ x: 0, y: 0, "text-anchor": "middle", transform: `translate(11 ${(top + bottom) / 2}) rotate(-90)` }, yaxis.title.text),
  ];
}

/** @param {Scale} scale @returns {[number, string][]} */
function labelled({ low, high }) {
  return ticks(low, high).map((value) => [value, general(value, 4)]);
}
