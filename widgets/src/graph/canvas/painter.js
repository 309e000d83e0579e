// Draws the scene onto a canvas: open parts, lines, boxes, and what is marked.

import { HEAD } from "../layout/scene.js";
import { PLAIN } from "../../shared/theme.js";
import { bounds, labelPlace, strokePath } from "./lines.js";

/** Scales from which on texts of boxes and of lines can be read. */
const TEXT_FROM = 0.42;
const LABELS_FROM = 0.85;
/** Lines from which on labels are only those of what is marked. */
const MOST_LABELS = 400;
/** Widths of the letters of titles and second lines; a box is made for them, whatever font is there. */
export const LETTER = { title: 7.4, subtitle: 6.4 };
const STRIPE = 5;
const ARROW = 5;
/** How much of its color a box takes that has no strength of its own, and from which strength on all text is as dark as titles. */
const TINT = 0.16;
export const STRONG = 0.3;
/** From the stripe of a legend's entry to its text. */
export const SWATCH = 18;
/** Dashes of the stripe for what shares its color with another category. @type {Record<string, number[]>} */
const DASHES = { slash: [7, 3], backslash: [12, 3], dots: [3, 3] };

/**
 * @typedef {import("../layout/scene.js").Box} Box @typedef {import("../layout/scene.js").Line} Line
 * @typedef {import("../../shared/theme.js").Theme & {border: string, muted: string}} MixedTheme
 * @typedef {object} Look
 * @property {import("../layout/scene.js").Drawn} drawn
 * @property {import("../model/colors.js").Colors} colors
 * @property {number} focus item with the keyboard's focus; -1 for none, as those below
 * @property {number} selected
 * @property {number} hover
 * @property {Set<number>} matches items that the search found, or that hold such
 * @property {{from: Box, to: Box}[]} far what the selected item reads and gives beyond its level
 * @property {(line: Line) => string} labelOf
 */

export class Painter {
  /** @param {CanvasRenderingContext2D} context of a canvas, or what records the same calls */
  constructor(context) {
    this.context = context;
    this.theme = withMixed(PLAIN);
  }

  /** @param {MixedTheme} theme */
  setTheme(theme) {
    this.theme = theme;
  }

  /** @param {Look} look @param {import("../layout/camera.js").Camera} camera @param {{width: number, height: number}} view @param {number} ratio pixels of the canvas per pixel */
  paint(look, camera, view, ratio) {
    const { context, theme } = this;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = theme.page;
    context.fillRect(0, 0, view.width, view.height);
    const near = ratio * camera.scale;
    context.setTransform(near, 0, 0, near, -camera.x * near, -camera.y * near);
    const area = { left: camera.x, top: camera.y, right: camera.x + view.width / camera.scale, bottom: camera.y + view.height / camera.scale };
    const isSeen = (/** @type {{x: number, y: number, width: number, height: number}} */ { x, y, width, height }) => x < area.right && x + width > area.left && y < area.bottom && y + height > area.top;
    const boxes = look.drawn.boxes.filter(isSeen);
    for (const box of boxes) if (box.isOpen) this.box(box, look, camera.scale);
    const lines = look.drawn.lines.filter((line) => isSeen(bounds(line.points)));
    this.lines(lines, look, camera.scale);
    for (const box of boxes) if (!box.isOpen) this.box(box, look, camera.scale);
    this.far(look, camera.scale);
    if (camera.scale >= LABELS_FROM * 0.6) this.labels(lines, look, camera.scale);
  }

  /** @param {Box} box @param {Look} look @param {number} scale */
  box(box, look, scale) {
    const { context, theme } = this;
    const { item, x, y, width, height, isOpen } = box;
    const code = item < 0 ? -1 : look.colors.codes[item];
    const category = code < 0 ? null : look.colors.categories[code];
    context.beginPath();
    context.roundRect(x, y, width, height, item < 0 ? height / 2 : 4);
    context.fillStyle = isOpen ? theme.raised : theme.page;
    context.fill();
    const strength = category?.strength ?? TINT;
    if (category && !isOpen) this.tint(category.color, strength);
    if (look.matches.has(item) && !isOpen) this.tint(theme.accent, 0.22);
    const isMarked = item >= 0 && (item === look.selected || item === look.focus || item === look.hover);
    context.lineWidth = (item === look.selected ? 3 : item === look.focus ? 2 : 1) / Math.min(scale, 1);
    context.strokeStyle = isMarked ? theme.accent : theme.border;
    context.setLineDash(item === look.focus && item !== look.selected ? [4, 3] : []);
    context.stroke();
    context.setLineDash([]);
    if (category?.strength && isOpen) this.head(box, category);
    else if (category && !category.strength) this.stripe(box, category);
    if (scale >= TEXT_FROM) this.texts(box, strength > STRONG ? theme.text : theme.muted);
  }

  /** @param {string} color @param {number} alpha */
  tint(color, alpha) {
    this.context.globalAlpha = alpha;
    this.context.fillStyle = color;
    this.context.fill();
    this.context.globalAlpha = 1;
  }

  /** @param {{x: number, y: number, height: number, isOpen?: boolean}} box @param {import("../../shared/picture/palette.js").Category} category */
  stripe({ x, y, height, isOpen = false }, { color, pattern }) {
    const { context } = this;
    context.strokeStyle = color;
    context.lineWidth = STRIPE;
    context.setLineDash(DASHES[pattern] ?? []);
    context.beginPath();
    context.moveTo(x + 1 + STRIPE / 2, y + 2);
    context.lineTo(x + 1 + STRIPE / 2, y + (isOpen ? HEAD - 4 : height - 2));
    context.stroke();
    context.setLineDash([]);
  }

  /** Fills the head of an open box. @param {Box} box @param {import("../../shared/picture/palette.js").Category} category */
  head({ x, y, width }, { color, strength = TINT }) {
    this.context.beginPath();
    this.context.roundRect(x + 1, y + 1, width - 2, HEAD - 4, 3);
    this.tint(color, strength);
  }

  /** @param {Box} box @param {string} color of the second line */
  texts({ item, x, y, width, height, isOpen, title, subtitle, canOpen }, color) {
    const { context, theme } = this;
    context.textBaseline = "middle";
    context.fillStyle = theme.text;
    if (item < 0) {
      context.textAlign = "center";
      context.font = `10px ${theme.font}`;
      context.fillText(title, x + width / 2, y + height / 2 + 0.5);
      return;
    }
    context.textAlign = "left";
    const left = x + STRIPE + 8;
    const middle = isOpen ? HEAD / 2 : height / 2;
    context.font = `600 12px ${theme.font}`;
    context.fillText(title, left, y + middle - (subtitle ? 8 : 0));
    if (canOpen) context.fillText(isOpen ? "−" : "+", x + width - 14, y + middle - (subtitle ? 8 : 0));
    if (!subtitle) return;
    context.font = `10.5px ${theme.font}`;
    context.fillStyle = color;
    context.fillText(subtitle, left, y + middle + 8);
  }

  /** Draws lines in three passes, so that marked ones lie on top. @param {Line[]} lines @param {Look} look @param {number} scale */
  lines(lines, look, scale) {
    const { context, theme } = this;
    const marked = lines.filter((line) => isMarked(line, look));
    context.lineWidth = 1 / Math.min(Math.max(scale, 0.25), 1);
    context.strokeStyle = context.fillStyle = theme.border;
    this.strokeAll(lines, scale);
    context.lineWidth *= 2;
    context.strokeStyle = context.fillStyle = theme.accent;
    this.strokeAll(marked, scale);
  }

  /** @param {Line[]} lines @param {number} scale */
  strokeAll(lines, scale) {
    if (!lines.length) return;
    const { context } = this;
    context.beginPath();
    for (const { points } of lines) strokePath(context, points);
    context.stroke();
    if (scale < TEXT_FROM / 2) return;
    context.beginPath();
    for (const { points, isUp, isDown } of lines) {
      if (isDown) this.arrow(/** @type {[number, number]} */ (points.at(-1)), -ARROW);
      if (isUp) this.arrow(points[0], ARROW);
    }
    context.fill();
  }

  /** @param {[number, number]} tip @param {number} length down from the tip */
  arrow([x, y], length) {
    this.context.moveTo(x, y);
    this.context.lineTo(x - ARROW * 0.6, y + length * 1.4);
    this.context.lineTo(x + ARROW * 0.6, y + length * 1.4);
    this.context.closePath();
  }

  /** Draws the title of a picture that is saved, and its legend. @param {import("./export.js").Page} page @param {number} left */
  heading({ title, entries }, left) {
    const { context, theme } = this;
    context.textAlign = "left";
    context.textBaseline = "middle";
    context.fillStyle = theme.text;
    context.font = `600 14px ${theme.font}`;
    context.fillText(title, left, left + 6);
    context.font = `11px ${theme.font}`;
    for (const { text, category, x, y } of entries) {
      if (category) this.swatch({ x, y: y - 8, height: 16 }, category);
      context.fillStyle = theme.text;
      context.fillText(text, x + (category ? SWATCH : 0), y);
    }
  }

  /** @param {{x: number, y: number, height: number}} place @param {import("../../shared/picture/palette.js").Category} category */
  swatch(place, category) {
    if (!category.strength) return this.stripe(place, category);
    this.context.beginPath();
    this.context.roundRect(place.x, place.y + 2, place.height - 4, place.height - 4, 2);
    this.tint(category.color, category.strength);
    this.context.lineWidth = 1;
    this.context.strokeStyle = this.theme.border;
    this.context.stroke();
  }

  /** @param {Look} look @param {number} scale */
  far({ far }, scale) {
    if (!far.length) return;
    const { context, theme } = this;
    context.strokeStyle = theme.accent;
    context.lineWidth = 1.5 / Math.min(scale, 1);
    context.setLineDash([6 / scale, 4 / scale]);
    context.beginPath();
    for (const { from, to } of far) {
      const [a, b] = [[from.x + from.width / 2, from.y + from.height], [to.x + to.width / 2, to.y]];
      const bend = Math.min(Math.max(Math.abs(b[1] - a[1]) / 2, 30), 160);
      context.moveTo(a[0], a[1]);
      context.bezierCurveTo(a[0], a[1] + bend, b[0], b[1] - bend, b[0], b[1]);
    }
    context.stroke();
    context.setLineDash([]);
  }

  /** Draws labels of lines where none covers another, those of marked lines first. @param {Line[]} lines @param {Look} look @param {number} scale */
  labels(lines, look, scale) {
    const { context, theme } = this;
    const marked = lines.filter((line) => isMarked(line, look));
    const others = scale >= LABELS_FROM && lines.length <= MOST_LABELS ? lines.filter((line) => !isMarked(line, look)) : [];
    context.font = `10px ${theme.font}`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    /** @type {{x: number, y: number, width: number}[]} */
    const taken = [];
    for (const line of [...marked.slice(0, MOST_LABELS), ...others]) {
      const text = look.labelOf(line);
      const [place, y] = labelPlace(line.points);
      const width = context.measureText(text).width + 6;
      const x = Math.max(Math.min(place, look.drawn.width - width / 2), width / 2);
      if (taken.some((label) => Math.abs(label.y - y) < 13 && Math.abs(label.x - x) < (label.width + width) / 2)) continue;
      taken.push({ x, y, width });
      context.fillStyle = theme.page;
      context.fillRect(x - width / 2, y - 6.5, width, 13);
      context.fillStyle = marked.includes(line) ? theme.text : theme.muted;
      context.fillText(text, x, y + 0.5);
    }
  }
}

/** @param {Line} line @param {Look} look */
function isMarked({ from, to }, { selected, hover, focus }) {
  return [selected, hover, focus].some((item) => item >= 0 && (item === from || item === to));
}

/** Adds colors between text and page to the theme. @param {import("../../shared/theme.js").Theme} theme @returns {MixedTheme} */
export function withMixed(theme) {
  const mix = (/** @type {number} */ part) => `color-mix(in srgb, ${theme.text} ${part}%, ${theme.page})`;
  return { ...theme, border: mix(50), muted: mix(74) };
}
