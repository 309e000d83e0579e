// The minimap: everything that is open, small, with a frame around what is in view.

import { h } from "../../shared/dom.js";

const WIDTH = 150;
const HIGHEST = 110;
/** Largest scale: a small picture has a small map. */
const NEAREST = 0.15;

export class Minimap {
  /** @param {{onMove: (x: number, y: number) => void}} options takes the middle of the new view, in the picture */
  constructor({ onMove }) {
    this.onMove = onMove;
    this.canvas = h("canvas", { class: "nb-graph-minimap", "aria-hidden": "true", title: "Overview: click or drag to move" });
    this.context = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
    this.picture = document.createElement("canvas");
    this.scale = 1;
    const go = (/** @type {PointerEvent} */ event) => {
      if (event.buttons !== 1) return;
      onMove(event.offsetX / this.scale, event.offsetY / this.scale);
      event.stopPropagation();
      event.preventDefault();
    };
    this.canvas.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => (this.canvas.setPointerCapture(event.pointerId), go(event)));
    this.canvas.addEventListener("pointermove", go);
  }

  /** Draws the boxes anew. @param {import("../layout/scene.js").Drawn} drawn @param {import("../model/colors.js").Colors} colors @param {import("./painter.js").MixedTheme} theme @param {number} ratio */
  renew(drawn, colors, theme, ratio) {
    this.scale = Math.min(NEAREST, WIDTH / Math.max(drawn.width, 1), HIGHEST / Math.max(drawn.height, 1));
    const [width, height] = [Math.max(Math.round(drawn.width * this.scale), 4), Math.max(Math.round(drawn.height * this.scale), 4)];
    for (const canvas of [this.canvas, this.picture]) [canvas.width, canvas.height] = [width * ratio, height * ratio];
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    const context = /** @type {CanvasRenderingContext2D} */ (this.picture.getContext("2d"));
    context.scale(this.scale * ratio, this.scale * ratio);
    context.lineWidth = 1 / this.scale;
    context.strokeStyle = theme.border;
    for (const { item, x, y, width: wide, height: high, isOpen } of drawn.boxes) {
      const code = item < 0 ? -1 : colors.codes[item];
      context.fillStyle = isOpen ? theme.raised : code < 0 ? theme.border : colors.categories[code].color;
      context.globalAlpha = isOpen || code < 0 ? 1 : (colors.categories[code].strength ?? 1);
      context.fillRect(x, y, Math.max(wide, 1 / this.scale), Math.max(high, 1 / this.scale));
      context.globalAlpha = 1;
      if (isOpen) context.strokeRect(x, y, wide, high);
    }
    this.ratio = ratio;
  }

  /** Draws the frame around what is in view; hidden where all of it is. @param {import("../layout/camera.js").Camera} camera @param {{width: number, height: number}} view @param {import("../layout/scene.js").Drawn} drawn @param {import("./painter.js").MixedTheme} theme */
  draw(camera, view, drawn, theme) {
    const [wide, high] = [view.width / camera.scale, view.height / camera.scale];
    this.canvas.hidden = camera.x <= 0 && camera.y <= 0 && camera.x + wide >= drawn.width && camera.y + high >= drawn.height;
    if (this.canvas.hidden) return;
    const { context, scale, ratio = 1 } = this;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = theme.page;
    context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    context.drawImage(this.picture, 0, 0);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.strokeStyle = theme.accent;
    context.lineWidth = 2;
    const [left, top] = [Math.max(camera.x, 0), Math.max(camera.y, 0)];
    const [right, bottom] = [Math.min(camera.x + wide, drawn.width), Math.min(camera.y + high, drawn.height)];
    context.strokeRect(left * scale + 1, top * scale + 1, Math.max((right - left) * scale - 2, 3), Math.max((bottom - top) * scale - 2, 3));
  }
}
