// The overview: all of the axis in one strip, with a window on what is in view that can be drawn, moved and resized.

import { panned } from "../layout/camera.js";
import { turned } from "../layout/rows.js";
import { addVisible, Runs } from "../layout/visible.js";
import { h } from "../../shared/dom.js";
import { isSame, PLAIN, themeOf } from "../../shared/theme.js";

const HEIGHT = 34;
/** How near to an edge of the window a pointer takes hold of it, and how far it may stray in a click. */
const GRIP = 6;
const STRAY = 3;
/** How much of its color remains of what is no match, and how much is hidden of what is out of view. */
const DIMMED = 0.25;
const VEIL = 0.6;

/** @typedef {import("../layout/camera.js").View} Camera */

/**
 * Returns what a pointer takes hold of: an edge of the window, the window, or the axis. Of a narrow window the inside stays the window.
 * @param {number} x @param {{left: number, right: number}} window in pixels @param {boolean} isWhole whether all is in view
 * @returns {"from" | "to" | "window" | "axis"}
 */
export function gripAt(x, { left, right }, isWhole) {
  const inner = Math.min(GRIP, (right - left) / 4);
  if (x >= left - GRIP && x <= left + inner) return "from";
  if (x >= right - inner && x <= right + GRIP) return "to";
  return !isWhole && x > left && x < right ? "window" : "axis";
}

/**
 * Returns the window after a drag from one value of the axis to another.
 * @param {string} grip of gripAt() @param {Camera} camera at the beginning @param {number} at @param {number} to @param {{min: number, max: number}} ends
 */
export function dragged(grip, camera, at, to, ends) {
  if (grip === "window") return panned(camera, (to - at) / (camera.to - camera.from), ends);
  const fixed = grip === "from" ? camera.to : grip === "to" ? camera.from : at;
  return { from: Math.min(fixed, to), to: Math.max(fixed, to) };
}

export class Minimap {
  /** @param {{onMove: (camera: Camera) => void, onAll: () => void}} options */
  constructor(options) {
    this.options = options;
    // The keys of the stage do the same: w, s, a, d and 0.
    this.element = h("canvas", { class: "nb-flame-minimap", "aria-hidden": "true", title: "Overview: drag to zoom, drag the window or its edges, click to go there, double-click for all" });
    this.context = /** @type {CanvasRenderingContext2D} */ (this.element.getContext("2d", { alpha: false }));
    /** All frames, and the matches of a search among them. */
    this.all = document.createElement("canvas");
    this.found = document.createElement("canvas");
    /** @type {import("../layout/layout.js").Rows | null} */
    this.matched = null;
    this.runs = new Runs();
    this.theme = PLAIN;
    /** What the picture of all frames shows. @type {any[]} */
    this.shown = [];
    /** @type {{grip: string, at: number, x: number, camera: Camera, isFar: boolean} | null} */
    this.drag = null;
    this.camera = { from: 0, to: 1 };
    this.ends = { min: 0, max: 1 };
    this.width = 1;
    this.element.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => this.pressed(event));
    this.element.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => this.moved(event));
    this.element.addEventListener("pointerup", (/** @type {PointerEvent} */ event) => this.released(event));
    this.element.addEventListener("pointercancel", () => (this.drag = null));
    this.element.addEventListener("dblclick", options.onAll);
  }

  /** Draws the strip; its pictures only where what they show has changed. @param {import("./painter.js").Scene} scene @param {Camera} camera @param {number} width in CSS pixels */
  draw(scene, camera, width) {
    const scale = window.devicePixelRatio || 1;
    const theme = themeOf(this.element);
    const { view, codes, categories, matched, isFlame } = scene;
    const now = [view, codes, categories, isFlame, width, scale];
    if (!isSame(theme, this.theme) || now.some((value, index) => value !== this.shown[index])) {
      this.theme = theme;
      this.shown = now;
      for (const canvas of [this.element, this.all, this.found]) [canvas.width, canvas.height] = [Math.round(width * scale), Math.round(HEIGHT * scale)];
      Object.assign(this.element.style, { width: `${width}px`, height: `${HEIGHT}px` });
      this.renew(this.all, scene, view.layout.rows);
      this.matched = null;
    }
    if (matched && matched !== this.matched) this.renew(this.found, scene, matched);
    this.matched = matched;
    [this.camera, this.ends, this.width] = [camera, view.layout, width];
    this.paint(scene.range, scale);
  }

  /** Draws rows of frames; matches over a dimmed picture of all. @param {HTMLCanvasElement} canvas @param {import("./painter.js").Scene} scene @param {import("../layout/layout.js").Rows} rows */
  renew(canvas, { view: { layout }, codes, categories, isFlame }, rows) {
    const { width, height } = canvas;
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { alpha: false }));
    context.fillStyle = this.theme.page;
    context.fillRect(0, 0, width, height);
    context.globalAlpha = DIMMED;
    if (canvas === this.found) context.drawImage(this.all, 0, 0);
    context.globalAlpha = 1;
    const lines = Math.min(layout.rowCount, height);
    const place = (/** @type {number} */ line) => Math.round((line * height) / lines);
    for (let line = 0; line < lines; line += 1) {
      // Of more rows than pixels some stand for all.
      const row = turned(layout, Math.floor((line * layout.rowCount) / lines), isFlame);
      this.runs.count = 0;
      addVisible(rows, row, { from: layout.min, to: layout.max, pixels: width }, codes, this.runs);
      fill(context, this.runs, categories, place(line), place(line + 1));
    }
  }

  /** Paints the window over the picture, and where the selected range is. @param {Camera | null} range @param {number} scale */
  paint(range, scale) {
    const { context, theme, element } = this;
    const { width, height } = element;
    const [left, right] = this.edges(this.camera, width);
    const line = Math.max(1, Math.round(2 * scale));
    context.drawImage(this.matched ? this.found : this.all, 0, 0);
    context.globalAlpha = VEIL;
    context.fillStyle = theme.page;
    context.fillRect(0, 0, left, height);
    context.fillRect(right, 0, width - right, height);
    context.globalAlpha = 1;
    context.fillStyle = theme.accent;
    if (range) {
      const [from, to] = this.edges(range, width);
      context.fillRect(from, height - 2 * line, Math.max(to - from, line), 2 * line);
    }
    context.fillStyle = theme.text;
    for (const x of [left, right - line]) context.fillRect(Math.min(Math.max(x, 0), width - line), 0, line, height);
    for (const y of [0, height - 1]) context.fillRect(left, y, right - left, 1);
  }

  /** Returns the edges of a part of the axis in pixels. @param {Camera} part @param {number} pixels */
  edges({ from, to }, pixels) {
    const { min, max } = this.ends;
    return [from, to].map((value) => Math.round(((value - min) / (max - min)) * pixels));
  }

  /** @param {number} x in CSS pixels */
  valueAt(x) {
    return this.ends.min + (Math.min(Math.max(x, 0), this.width) / this.width) * (this.ends.max - this.ends.min);
  }

  /** @param {number} x */
  gripAt(x) {
    const [left, right] = this.edges(this.camera, this.width);
    return gripAt(x, { left, right }, left <= 0 && right >= this.width);
  }

  /** @param {PointerEvent} event */
  pressed(event) {
    if (event.button !== 0) return;
    this.element.setPointerCapture(event.pointerId);
    const x = event.offsetX;
    this.drag = { grip: this.gripAt(x), at: this.valueAt(x), x, camera: this.camera, isFar: false };
    event.preventDefault();
  }

  /** @param {PointerEvent} event */
  moved({ offsetX }) {
    const { drag } = this;
    if (!drag) {
      const cursors = { from: "ew-resize", to: "ew-resize", window: "grab", axis: "crosshair" };
      this.element.style.cursor = cursors[this.gripAt(offsetX)];
      return;
    }
    drag.isFar ||= Math.abs(offsetX - drag.x) > STRAY;
    if (drag.isFar) this.options.onMove(dragged(drag.grip, drag.camera, drag.at, this.valueAt(offsetX), this.ends));
  }

  /** Ends a drag; a click brings its place into the middle. @param {PointerEvent} event */
  released(event) {
    const { drag } = this;
    this.drag = null;
    if (!drag || drag.isFar || event.type !== "pointerup") return;
    const { from, to } = drag.camera;
    this.options.onMove(panned(drag.camera, (drag.at - (from + to) / 2) / (to - from), this.ends));
  }
}

/** @param {CanvasRenderingContext2D} context @param {Runs} runs @param {import("../../shared/picture/palette.js").Category[]} categories @param {number} top @param {number} bottom */
function fill(context, { count, left, right, category }, categories, top, bottom) {
  let code = -1;
  for (let run = 0; run < count; run += 1) {
    if (category[run] !== code) {
      code = category[run];
      context.fillStyle = categories[code].color;
    }
    context.fillRect(left[run], top, right[run] - left[run], bottom - top);
  }
}
