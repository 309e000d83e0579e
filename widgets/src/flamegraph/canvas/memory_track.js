// Memory over time below the timeline, on its axis: what is allocated on each device, and the peak.

import { bytesAt, columnsInView, memoryCurve } from "../layout/memory.js";
import { dataSize, duration } from "../../shared/units.js";
import { h } from "../../shared/dom.js";
import { themeOf } from "../../shared/theme.js";

const HEIGHT = 54;

export class MemoryTrack {
  /** @param {{device: string, time: Float64Array, allocated: Float64Array}[]} memory */
  constructor(memory) {
    this.parts = memory.filter(({ time }) => time.length).map((events) => part(memoryCurve(events)));
    this.element = h("div", { class: "nb-flame-memory", role: "group", "aria-label": "Memory over time", hidden: true }, ...this.parts.map(({ element }) => element));
    for (const { canvas, curve, now } of this.parts) {
      canvas.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => this.point(event, curve, now));
      canvas.addEventListener("pointerleave", () => (now.textContent = ""));
    }
  }

  get isEmpty() {
    return this.parts.length === 0;
  }

  /** @param {PointerEvent} event @param {import("../layout/memory.js").Curve} curve @param {HTMLElement} now */
  point(event, curve, now) {
    if (!this.camera) return;
    const time = this.camera.from + (event.offsetX / (this.width ?? 1)) * (this.camera.to - this.camera.from);
    now.textContent = `${dataSize(bytesAt(curve, time))} at ${duration(time)}`;
  }

  /** @param {import("../layout/camera.js").View} camera @param {number} width in CSS pixels */
  draw(camera, width) {
    this.camera = camera;
    this.width = width;
    if (this.element.hidden || width <= 0) return;
    for (const { canvas, curve } of this.parts) paint(canvas, curve, camera, width);
  }
}

/** Makes the line of one device. @param {import("../layout/memory.js").Curve} curve */
function part(curve) {
  const peak = `peak ${dataSize(curve.peak)} at ${duration(curve.peakTime)}`;
  const canvas = h("canvas", { role: "img", "aria-label": `Memory allocated on ${curve.device}: ${peak}` });
  const now = h("span", {});
  const line = h("div", { class: "nb-memory-line" }, h("strong", {}, `memory ${curve.device}`), h("span", { class: "nb-muted" }, peak), now);
  return { curve, canvas, now, element: h("div", {}, line, canvas) };
}

/** @param {HTMLCanvasElement} canvas @param {import("../layout/memory.js").Curve} curve @param {import("../layout/camera.js").View} camera @param {number} width */
function paint(canvas, curve, camera, width) {
  const scale = window.devicePixelRatio || 1;
  const [across, down] = [Math.round(width * scale), Math.round(HEIGHT * scale)];
  if (canvas.width !== across) canvas.width = across;
  if (canvas.height !== down) canvas.height = down;
  canvas.style.width = `${width}px`;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { alpha: false }));
  const theme = themeOf(canvas);
  context.fillStyle = theme.page;
  context.fillRect(0, 0, across, down);
  const { low, high } = columnsInView(curve, camera, across);
  const perByte = (down - 4 * scale) / Math.max(curve.peak, 1);
  const top = (/** @type {number} */ bytes) => down - Math.max(0, Math.round(bytes * perByte));
  const line = Math.max(1, Math.round(1.5 * scale));
  context.globalAlpha = 0.28;
  context.fillStyle = theme.accent;
  for (let x = 0; x < across; x += 1) context.fillRect(x, top(high[x]), 1, down);
  context.globalAlpha = 1;
  let last = top(low[0]);
  for (let x = 0; x < across; x += 1) {
    const [from, to] = [Math.min(top(high[x]), last), Math.max(top(low[x]), last)];
    context.fillRect(x, from, 1, Math.max(to - from, 0) + line);
    last = top(low[x]);
  }
}
