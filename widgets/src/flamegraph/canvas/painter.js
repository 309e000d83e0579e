// Paints the part of a flame graph that is in view on a canvas: boxes, labels, marks, axis.

import { ticks } from "../layout/camera.js";
import { changeMark, nameOf } from "../views/describe.js";
import { labelOf } from "../layout/labels.js";
import { AXIS, ROW, rowAt, topOf } from "../layout/rows.js";
import { addVisible, Runs } from "../layout/visible.js";
import { isSame, PLAIN } from "../../shared/theme.js";
import { duration } from "../../shared/units.js";
import { patternFill } from "./patterns.js";

/** Narrower boxes carry no label, in CSS pixels. */
const LABELED = 26;
const PAD = 4;
/** Narrower boxes show no pattern, in device pixels. */
const TEXTURED = 6;
const INK = "#000000";
/** How far outside of the canvas an edge is drawn at most, in device pixels. */
const VEIL = 8;
/** How much of its color a box keeps that is no match. */
const DIMMED = 22;

/**
 * @typedef {{camera: import("../layout/camera.js").View, width: number, height: number, top: number}} Area what is in view, in CSS pixels
 * @typedef {object} Scene
 * @property {import("../views/views.js").View} view
 * @property {Uint8Array} codes category of each frame
 * @property {import("../../shared/picture/palette.js").Category[]} categories
 * @property {import("../layout/layout.js").Rows | null} matched rows of matches, null without a search
 * @property {(frame: number) => import("../views/describe.js").Change} change
 * @property {boolean} isFlame
 * @property {number} focus frame with the keyboard's focus, -1 for none
 * @property {number} selected
 * @property {number} hover
 * @property {import("../data/range_sums.js").Range | null} range of time that is selected
 */

export class Painter {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { alpha: false }));
    this.runs = new Runs();
    this.matches = new Runs();
    this.fills = new Map();
    /** Top edge of each row in view. @type {Map<number, number>} */
    this.tops = new Map();
    this.theme = PLAIN;
    this.scale = 1;
    this.pixels = this.letter = this.dots = 0;
  }

  /** @param {import("../../shared/theme.js").Theme} theme @param {number} scale device pixels for one of CSS */
  setTheme(theme, scale) {
    if (this.letter && this.scale === scale && isSame(theme, this.theme)) return;
    this.theme = theme;
    this.scale = scale;
    this.fills.clear();
    this.context.font = `${11 * scale}px ${theme.font}`;
    this.letter = this.context.measureText("0").width;
    this.dots = this.context.measureText("…").width;
  }

  /** @param {Scene} scene @param {Area} area */
  paint(scene, area) {
    const { context, scale, theme } = this;
    this.pixels = Math.round(area.width * scale);
    context.fillStyle = theme.page;
    context.fillRect(0, 0, this.pixels, Math.round(area.height * scale));
    this.collect(scene, area);
    this.boxes(this.runs, scene, area, scene.matched !== null);
    this.labels(this.runs, scene, area, scene.matched ? theme.text : INK);
    if (scene.matched) {
      this.boxes(this.matches, scene, area, false);
      this.outlines(scene, area);
      this.labels(this.matches, scene, area, INK);
    }
    this.headings(scene, area);
    this.mark(scene, area, scene.hover, 1, theme.text);
    this.mark(scene, area, scene.selected, 2, theme.text);
    this.mark(scene, area, scene.focus, 3, theme.accent);
    this.axis(area);
    if (scene.range) this.range(scene.range, area);
  }

  /** Finds what is in view. @param {Scene} scene @param {Area} area */
  collect({ view, codes, matched, isFlame }, { camera, height, top }) {
    this.runs.count = 0;
    this.matches.count = 0;
    const inView = { ...camera, pixels: this.pixels };
    this.tops.clear();
    for (let shown = Math.floor(top / ROW); shown * ROW < top + height; shown += 1) {
      const row = rowAt(view.layout, AXIS + shown * ROW, isFlame);
      if (row < 0 || row >= view.layout.rowCount) continue;
      this.tops.set(row, Math.round((topOf(view.layout, row, isFlame) - top) * this.scale));
      addVisible(view.layout.rows, row, inView, codes, this.runs);
      if (matched) addVisible(matched, row, inView, codes, this.matches);
    }
  }

  /** Returns the fill and pattern of a category, dimmed or not. @param {import("../../shared/picture/palette.js").Category} category @param {boolean} isDimmed */
  fillOf(category, isDimmed) {
    const key = `${category.color} ${category.pattern} ${isDimmed}`;
    if (!this.fills.has(key)) {
      const color = isDimmed ? mixed(category.color, this.theme.page, DIMMED) : category.color;
      this.fills.set(key, { color, pattern: isDimmed ? null : patternFill(this.context, category.pattern, this.scale) });
    }
    return this.fills.get(key);
  }

  /** @param {Runs} runs @param {Scene} scene @param {Area} area @param {boolean} isDimmed */
  boxes(runs, { categories }, area, isDimmed) {
    const height = Math.round(ROW * this.scale) - 1;
    const { left, right, row, category } = runs;
    categories.forEach((look, code) => {
      const { color, pattern } = this.fillOf(look, isDimmed);
      for (const fill of pattern ? [color, pattern] : [color]) {
        this.context.fillStyle = fill;
        for (let run = 0; run < runs.count; run += 1) {
          const width = right[run] - left[run];
          if (category[run] !== code || (fill === pattern && width < TEXTURED)) continue;
          // A line of the page's color parts neighbors, where there is room for it.
          this.context.fillRect(left[run], this.tops.get(row[run]) ?? 0, width > 3 ? width - 1 : width, height);
        }
      }
    });
  }

  /** @param {Runs} runs @param {Scene} scene @param {Area} area @param {string} color */
  labels(runs, { view, change }, area, color) {
    const { context, scale } = this;
    const { frames } = view;
    context.font = `${11 * scale}px ${this.theme.font}`;
    context.textBaseline = "middle";
    context.textAlign = "left";
    context.fillStyle = color;
    const middle = (ROW * scale) / 2;
    for (let run = 0; run < runs.count; run += 1) {
      const frame = runs.frame[run];
      const room = runs.right[run] - runs.left[run] - 2 * PAD * scale;
      if (frame < 0 || room < (LABELED - 2 * PAD) * scale) continue;
      const mark = changeMark(change(frame));
      const text = this.fit(nameOf(frames, frame), mark, room);
      context.fillText(text, runs.left[run] + PAD * scale, (this.tops.get(runs.row[run]) ?? 0) + middle);
    }
  }

  /** Returns a name with its mark, in a shorter form where the whole one has no room. @param {string} name @param {string} mark @param {number} room */
  fit(name, mark, room) {
    return this.cut(labelOf(name, mark, Math.floor(room / this.letter)), room);
  }

  /** As much of a text as there is room for. @param {string} text @param {number} room */
  cut(text, room) {
    const most = Math.floor(room / this.letter);
    const isPlain = text.length <= 2 * most ? /^[ -~]*$/.test(text) : false;
    if (isPlain && text.length <= most) return text;
    let kept = text.slice(0, Math.max(most, 1));
    if (kept.length === text.length && this.context.measureText(kept).width <= room) return kept;
    kept = kept.slice(0, Math.max(Math.floor((room - this.dots) / this.letter), 1));
    // Wide letters take more than one place.
    while (kept.length > 1 && !/^[ -~]*$/.test(kept) && this.context.measureText(kept).width > room - this.dots) kept = kept.slice(0, -1);
    // No half of a letter that takes two places in memory.
    return `${kept.replace(/[\ud800-\udbff]$/, "")}…`;
  }

  /** Underlines each match, so that color alone does not tell it. @param {Scene} scene @param {Area} area */
  outlines(scene, area) {
    const { context, matches, scale, theme } = this;
    const line = Math.max(2, Math.round(2 * scale));
    context.fillStyle = theme.text;
    for (let run = 0; run < matches.count; run += 1) {
      const width = matches.right[run] - matches.left[run];
      context.fillRect(matches.left[run], (this.tops.get(matches.row[run]) ?? 0) + Math.round(ROW * scale) - 1 - line, width > 3 ? width - 1 : width, line);
    }
  }

  /** @param {Scene} scene @param {Area} area */
  headings({ view }, { top, height }) {
    const { context, scale, theme } = this;
    for (const { name, first, hasHeading } of view.layout.blocks) {
      const y = AXIS + (first - 1) * ROW - top;
      if (!hasHeading || y < -ROW || y > height) continue;
      context.fillStyle = theme.raised;
      context.fillRect(0, Math.round(y * scale), this.pixels, Math.round(ROW * scale) - 1);
      context.fillStyle = theme.text;
      context.fillText(this.cut(name, this.pixels - 2 * PAD * scale), PAD * scale, (y + ROW / 2) * scale);
    }
  }

  /** Draws a frame's outline. @param {Scene} scene @param {Area} area @param {number} frame @param {number} line @param {string} color */
  mark({ view, isFlame }, { camera, top, width }, frame, line, color) {
    if (frame < 0) return;
    const { layout, frames } = view;
    const { context, scale } = this;
    const perUnit = this.pixels / (camera.to - camera.from);
    const left = Math.max((layout.left[frame] - camera.from) * perUnit, -8);
    const right = Math.min((layout.left[frame] + frames.width[frame] - camera.from) * perUnit, width * scale + 8);
    if (right < -4 || left > width * scale + 4) return;
    const y = (topOf(layout, layout.row[frame], isFlame) - top) * scale;
    const inset = (line * scale) / 2;
    context.lineWidth = line * scale;
    context.strokeStyle = color;
    context.strokeRect(left + inset - 1, y + inset - 1, Math.max(right - left - 2 * inset + 1, 2 * scale), ROW * scale - 2 * inset + 1);
  }

  /** Veils what lies outside a range, and says in the axis how long it is. @param {import("../data/range_sums.js").Range} range @param {Area} area */
  range({ from, to }, { camera, height }) {
    const { context, scale, theme, pixels } = this;
    const perUnit = pixels / (camera.to - camera.from);
    const [left, right] = [from, to].map((value) => Math.round(Math.min(Math.max((value - camera.from) * perUnit, -VEIL), pixels + VEIL)));
    const [down, line] = [Math.round(height * scale), Math.max(1, Math.round(2 * scale))];
    context.globalAlpha = 0.55;
    context.fillStyle = theme.page;
    context.fillRect(0, 0, left, down);
    context.fillRect(right, 0, pixels - right, down);
    context.globalAlpha = 1;
    context.fillStyle = theme.accent;
    context.fillRect(left - line, 0, line, down);
    context.fillRect(right, 0, line, down);
    context.fillRect(left, Math.round(AXIS * scale) - line, Math.max(right - left, 0), line);
    const text = duration(to - from);
    const [start, end] = [Math.max(left, 0), Math.min(right, pixels)];
    const room = this.letter * text.length + 2 * PAD * scale;
    if (end - start < room) return;
    context.fillStyle = theme.accent;
    context.fillRect((start + end - room) / 2, 0, room, Math.round(AXIS * scale));
    context.fillStyle = theme.page;
    context.fillText(text, (start + end - room) / 2 + PAD * scale, (AXIS / 2) * scale);
  }

  /** @param {Area} area */
  axis({ camera, width }) {
    const { context, scale, theme } = this;
    context.fillStyle = theme.page;
    context.fillRect(0, 0, this.pixels, Math.round(AXIS * scale));
    context.font = `${10 * scale}px ${theme.font}`;
    context.textBaseline = "middle";
    const { values, step } = ticks(camera, Math.max(1, Math.floor(width / 95)));
    for (const value of values) {
      const x = Math.round(((value - camera.from) / (camera.to - camera.from)) * this.pixels);
      context.fillStyle = theme.line;
      context.fillRect(x, 0, Math.max(1, Math.round(scale)), AXIS * scale);
      context.fillStyle = theme.text;
      context.fillText(tickText(value, step), x + PAD * scale, (AXIS / 2) * scale);
    }
  }
}

/** Formats the time of a tick with as many digits as its step needs. @param {number} value @param {number} step */
function tickText(value, step) {
  if (value === 0) return "0";
  const [factor, unit] = Math.abs(value) >= 1e6 ? [1e6, "s"] : Math.abs(value) >= 1e3 ? [1e3, "ms"] : [1, "µs"];
  const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / factor) - 1e-9)));
  return Number.isFinite(value) ? `${(value / factor).toFixed(digits)} ${unit}` : duration(value);
}

/** Mixes two colors, `percent` of the first. @param {string} color "#rrggbb" @param {string} page "rgb(r, g, b)" @param {number} percent */
function mixed(color, page, percent) {
  const behind = (page.match(/[\d.]+/g) ?? ["255", "255", "255"]).map(Number);
  const parts = [1, 3, 5].map((at, index) => {
    const own = Number.parseInt(color.slice(at, at + 2), 16);
    return Math.round((own * percent + behind[index] * (100 - percent)) / 100);
  });
  return `rgb(${parts.join(", ")})`;
}
