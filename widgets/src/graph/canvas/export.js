// The whole picture with its title and legend as a file: SVG, or PNG at twice its size. The painter of the page draws both.

import { legendOf } from "../model/legend.js";
import { counted } from "../../shared/units.js";
import { Painter, SWATCH } from "./painter.js";
import { SvgContext } from "./svg_context.js";

const MARGIN = 16;
const [TITLE, ROW, GAP] = [26, 20, 16];
/** A title may make a picture so wide, and a legend needs so much at least. */
const [WIDEST_TITLE, NARROWEST] = [900, 320];
export const PNG_SCALE = 2;
/** Sides and pixels that every browser can draw. */
const [MOST_SIDE, MOST_PIXELS] = [16_384, 64_000_000];

/** @typedef {import("./painter.js").Look} Look @typedef {import("./painter.js").MixedTheme} MixedTheme */
/** @typedef {{text: string, x: number, y: number, category: import("../../shared/picture/palette.js").Category | null}} Entry */
/** @typedef {{title: string, entries: Entry[], width: number, height: number, top: number}} Page the picture begins at `top` */

/** Returns a picture as SVG. @param {Look} look @param {MixedTheme} theme @param {string} title */
export function svgOf(look, theme, title) {
  const context = new SvgContext(measured, plainColor);
  const page = draw(/** @type {any} */ (context), look, theme, title, 1);
  return new Blob([context.file(page.width, page.height, title)], { type: "image/svg+xml" });
}

/** Returns a picture as PNG, or the sentence why there is none. @param {Look} look @param {MixedTheme} theme @param {string} title @returns {Promise<Blob | string>} */
export async function pngOf(look, theme, title) {
  const { width, height } = pageOf(look, title, theme.font, measured);
  const tooLarge = tooLargeFor(width * PNG_SCALE, height * PNG_SCALE);
  if (tooLarge) return tooLarge;
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [Math.round(width * PNG_SCALE), Math.round(height * PNG_SCALE)];
  draw(/** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d")), look, theme, title, PNG_SCALE);
  const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
  return blob ?? "This browser could not draw a PNG of this size; close some parts, or save SVG.";
}

/** Says why a PNG cannot be so large; "" if it can. @param {number} width @param {number} height in pixels */
export function tooLargeFor(width, height) {
  if (Math.max(width, height) <= MOST_SIDE && width * height <= MOST_PIXELS) return "";
  const [wide, high] = [width, height].map((side) => Math.round(side).toLocaleString("en"));
  return `A PNG of ${wide} × ${high} pixels is too large (${MOST_SIDE.toLocaleString("en")} a side and 64 million at most); close some parts, or save SVG.`;
}

/** Returns a file name made of what is drawn. @param {string[]} names @param {string} type */
export function fileName(names, type) {
  const words = names.map((name) => name.replace(/[^\p{L}\p{N}._-]+/gu, "_").replace(/^[._]+|[._]+$/g, "")).filter(Boolean);
  return `${words.join("-").slice(0, 80) || "graph"}.${type}`;
}

/** @param {CanvasRenderingContext2D} context @param {Look} look @param {MixedTheme} theme @param {string} title @param {number} ratio */
function draw(context, look, theme, title, ratio) {
  const page = pageOf(look, title, theme.font, measured);
  const painter = new Painter(context);
  painter.setTheme(theme);
  painter.paint(look, { x: (look.drawn.width - page.width) / 2, y: -page.top, scale: 1 }, page, ratio);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  painter.heading(page, MARGIN);
  return page;
}

/** Lays out the page. @param {Look} look @param {string} title @param {string} font @param {(text: string, font: string) => {width: number}} measured @returns {Page} */
export function pageOf({ drawn, colors }, title, font, measured) {
  const wide = measured(title, `600 14px ${font}`).width;
  const room = Math.max(drawn.width, Math.min(wide, WIDEST_TITLE), NARROWEST);
  const shownTitle = wide <= room ? title : `${title.slice(0, Math.floor((title.length * room) / wide) - 1)}…`;
  const { caption, entries: shown, others } = legendOf(colors);
  const texts = [...(caption ? [{ text: caption, category: null }] : []),
    ...shown.map(({ category, count }) => ({ text: count ? `${category.label} (${counted(count, "node")})` : category.label, category })),
    ...others.map((text) => ({ text, category: null }))];
  let [x, row] = [0, 0];
  const entries = texts.map(({ text, category }) => {
    const width = measured(text, `11px ${font}`).width + (category ? SWATCH : 0);
    if (x > 0 && x + width > room) [x, row] = [0, row + 1];
    const entry = { text, category, x: MARGIN + x, y: MARGIN + TITLE + (row + 0.5) * ROW };
    x += width + GAP;
    return entry;
  });
  const top = MARGIN + TITLE + (entries.length ? (row + 1) * ROW + 8 : 0);
  return { title: shownTitle, entries, top, width: Math.ceil(room + 2 * MARGIN), height: Math.ceil(top + drawn.height + MARGIN) };
}

/** @type {CanvasRenderingContext2D | null} */
let kept = null;

function pixel() {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [1, 1];
  kept ??= canvas.getContext("2d", { willReadFrequently: true });
  return /** @type {CanvasRenderingContext2D} */ (kept);
}

/** @param {string} text @param {string} font */
function measured(text, font) {
  const context = pixel();
  context.font = font;
  const [alphabetic, middle] = /** @type {CanvasTextBaseline[]} */ (["alphabetic", "middle"]).map((baseline) => {
    context.textBaseline = baseline;
    return context.measureText(text);
  });
  return { width: alphabetic.width, middle: alphabetic.fontBoundingBoxAscent - middle.fontBoundingBoxAscent };
}

/** Writes a color without functions, which few viewers of SVG know. @param {string} color */
function plainColor(color) {
  const context = pixel();
  context.fillStyle = color;
  context.fillRect(0, 0, 1, 1);
  return `#${[...context.getImageData(0, 0, 1, 1).data.slice(0, 3)].map((part) => part.toString(16).padStart(2, "0")).join("")}`;
}

/** Hands a file to the browser's downloads. @param {Blob} blob @param {string} name */
export function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  window.setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
