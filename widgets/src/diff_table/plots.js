// Plots of a difference, drawn as SVG: the pointer and the arrow keys read values, dragging zooms.

import { h } from "../shared/dom.js";
import { general } from "../shared/numbers.js";
import { extents, nearest, plotMarks, valueAt } from "./plot_marks.js";

const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 230;
const WIDTH = 340;
/** Pixels that a drag must span to be no click. */
const DRAGGED = 6;
const HINT = "Arrow keys read the values. Drag to zoom, or press + and -; double-click or 0 shows all.";

export class Plots {
  constructor() {
    this.element = h("div", { class: "nb-plots" });
    /** @type {PlotView[]} */
    this.views = [];
  }

  /** @param {import("./plot_marks.js").Plot[]} plots */
  show(plots) {
    this.clear();
    this.views = plots.map((plot) => new PlotView(plot));
    this.element.replaceChildren(...this.views.map(({ element }) => element));
  }

  clear() {
    for (const view of this.views) view.destroy();
    this.views = [];
    this.element.replaceChildren();
  }
}

/** One plot with its title, what it says of the value that is pointed at, and the range that is shown. */
class PlotView {
  /** @param {import("./plot_marks.js").Plot} plot */
  constructor(plot) {
    this.plot = plot;
    /** @type {import("./plot_marks.js").Range | null} */
    this.range = null;
    this.width = 0;
    /** The range that was last drawn. @type {import("./plot_marks.js").Range | null} */
    this.drawnRange = null;
    this.at = -1;
    this.picture = svg("svg", { role: "img", tabindex: 0, "aria-label": `${plot.description} ${HINT}` });
    this.readout = h("p", { class: "nb-plot-value nb-muted", role: "status" });
    this.element = h("figure", { class: "nb-plot" }, h("figcaption", {}, plot.title), this.picture, scaleOf(plot), this.readout);
    this.listen();
    this.watcher = new ResizeObserver(() => this.draw());
    this.watcher.observe(this.element);
  }

  listen() {
    const on = (/** @type {string} */ name, /** @type {(event: any) => void} */ does) => this.picture.addEventListener(name, does);
    on("pointermove", (event) => (this.start ? this.drag(event) : this.pointAt(event)));
    on("pointerleave", () => this.start || this.mark(-1));
    on("pointerdown", (event) => event.button === 0 && (this.start = this.pointOf(event)) && event.pointerType !== "touch" && this.picture.setPointerCapture(event.pointerId));
    on("pointerup", (event) => this.drop(event));
    on("pointercancel", () => this.stopDrag());
    on("dblclick", () => this.zoom(null));
    on("keydown", (event) => this.key(event));
    on("blur", () => this.mark(-1));
  }

  draw() {
    const width = this.element.clientWidth || WIDTH;
    if (width === this.width && this.drawing && this.drawnRange === this.range) return;
    this.width = width;
    this.drawnRange = this.range;
    this.drawing = plotMarks(this.plot, width, HEIGHT, this.range);
    const { axes, items, lines, area } = this.drawing;
    this.picture.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    // What lies outside the range is cut at the edge of an inner picture.
    const inside = svg("svg", { ...area, viewBox: `${area.x} ${area.y} ${area.width} ${area.height}` }, ...lines.map(element), ...items.map(({ mark }) => element(mark)));
    this.marker = svg("rect", { class: "nb-plot-marker", visibility: "hidden" });
    this.picture.replaceChildren(...axes.map(element), inside, this.marker);
    this.mark(-1);
  }

  /** Says what a value is, and marks it. @param {number} at its place among the items; -1 for none */
  mark(at) {
    this.at = at;
    const item = this.drawing?.items[at];
    this.readout.textContent = item?.label ?? "";
    this.marker?.setAttribute("visibility", item ? "visible" : "hidden");
    if (item) this.frame({ x: item.hit.x - 1, y: item.hit.y - 1, width: item.hit.width + 2, height: item.hit.height + 2 });
  }

  /** @param {import("./plot_marks.js").Box} box */
  frame(box) {
    for (const [name, value] of Object.entries(box)) this.marker?.setAttribute(name, String(value));
  }

  /** Returns where a pointer is in the picture. @param {PointerEvent} event */
  pointOf(event) {
    const box = this.picture.getBoundingClientRect();
    const scale = (this.width || WIDTH) / (box.width || 1);
    return { x: (event.clientX - box.left) * scale, y: (event.clientY - box.top) * scale };
  }

  /** @param {PointerEvent} event */
  pointAt(event) {
    const { x, y } = this.pointOf(event);
    const items = this.drawing?.items ?? [];
    const item = nearest(items, x, y);
    this.mark(item ? items.indexOf(item) : -1);
  }

  /** @param {PointerEvent} event */
  drag(event) {
    const box = this.dragged(event);
    if (!box) return;
    this.readout.textContent = "";
    this.marker?.setAttribute("visibility", "visible");
    this.frame(box);
  }

  /** Returns the box from where the pointer went down; null where that is no more than a click. @param {PointerEvent} event */
  dragged(event) {
    if (!this.start || !this.drawing) return null;
    const { area } = this.drawing;
    const end = this.pointOf(event);
    const within = (/** @type {number} */ value, /** @type {number} */ low, /** @type {number} */ size) => Math.min(Math.max(value, low), low + size);
    const [x1, x2] = [this.start.x, end.x].map((value) => within(value, area.x, area.width)).sort((left, right) => left - right);
    const [y1, y2] = this.plot.kind === "histogram" ? [area.y, area.y + area.height]
      : [this.start.y, end.y].map((value) => within(value, area.y, area.height)).sort((left, right) => left - right);
    return x2 - x1 < DRAGGED || y2 - y1 < DRAGGED ? null : { x: x1, y: y1, width: x2 - x1, height: y2 - y1 };
  }

  /** @param {PointerEvent} event */
  drop(event) {
    const box = this.dragged(event);
    this.stopDrag();
    if (box) this.zoomTo(box);
    else this.pointAt(event);
  }

  stopDrag() {
    this.start = null;
    this.mark(-1);
  }

  /** @param {import("./plot_marks.js").Box} box in pixels */
  zoomTo({ x, y, width, height }) {
    const { across, up } = /** @type {import("./plot_marks.js").Drawing} */ (this.drawing);
    const rising = (/** @type {number[]} */ [left, right]) => /** @type {[number, number]} */ (left < right ? [left, right] : [right, left]);
    const isWhole = this.plot.kind === "histogram";
    this.zoom({
      x: rising([valueAt(x, across), valueAt(x + width, across)]),
      y: isWhole ? [up.low, up.high] : rising([valueAt(y, up), valueAt(y + height, up)]),
    });
  }

  /** @param {import("./plot_marks.js").Range | null} range */
  zoom(range) {
    // Beyond what a float can tell apart there is nothing to see.
    if (range && [range.x, range.y].some(([low, high]) => !(high - low > 1e-12 * Math.max(Math.abs(low), Math.abs(high))))) return;
    const all = extents(this.plot);
    const isAll = range && [[range.x, all.x], [range.y, all.y]].every(([shown, whole]) => shown[0] <= whole[0] && shown[1] >= whole[1]);
    this.range = isAll ? null : range;
    this.draw();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const { items = [], perRow = 1, area } = this.drawing ?? {};
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: perRow, ArrowUp: -perRow, Home: -items.length, End: items.length };
    const step = /** @type {Record<string, number>} */ (steps)[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (step !== undefined && items.length) this.mark(Math.min(Math.max(this.at < 0 && step > -items.length ? 0 : this.at + step, 0), items.length - 1));
    else if (event.key === "0" || (event.key === "Escape" && this.range)) this.zoom(null);
    else if ((event.key === "+" || event.key === "=" || event.key === "-") && area) this.zoomBy(event.key === "-" ? 2 : 0.5, area, items[this.at]?.hit);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {number} factor @param {import("./plot_marks.js").Box} area @param {import("./plot_marks.js").Box} [around] */
  zoomBy(factor, area, around) {
    if (factor > 1 && this.range === null) return;
    const center = around ?? area;
    const [width, height] = [area.width * factor, area.height * factor];
    const isWhole = this.plot.kind === "histogram";
    this.zoomTo({ x: center.x + (center.width - width) / 2, y: isWhole ? area.y : center.y + (center.height - height) / 2, width, height: isWhole ? area.height : height });
  }

  destroy() {
    this.watcher.disconnect();
  }
}

/** Returns what the colors of a heat map stand for. @param {import("./plot_marks.js").Plot} plot */
function scaleOf(plot) {
  if (plot.kind !== "heat_map") return null;
  return h("p", { class: "nb-plot-scale nb-muted", "aria-hidden": "true" }, "0 ", h("span", {}), ` ${general(plot.largest, 3)}`);
}

/** @param {import("./plot_marks.js").Mark} mark */
function element({ tag, kind, attributes, text }) {
  const made = svg(tag, { class: `nb-plot-${kind}`, ...attributes });
  if (text) made.textContent = text;
  return made;
}

/** @param {string} tag @param {Record<string, string | number>} attributes @param {Element[]} children */
function svg(tag, attributes, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.append(...children);
  return made;
}
