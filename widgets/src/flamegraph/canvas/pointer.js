// What pointer and wheel do on the stage: hover, click, select a range of time, pan, zoom.

import { panned, zoomed } from "../layout/camera.js";
import { AXIS } from "../layout/rows.js";

/** How far a pointer may stray before a click is a drag. */
const STRAY = 4;

/**
 * @typedef {object} PointerOptions
 * @property {(frame: number, point: {x: number, y: number}) => void} onHover
 * @property {(frame: number) => void} onClick
 * @property {(range: import("../data/range_sums.js").Range, isDone: boolean) => void} onRange
 * @property {(hasZoomed: boolean) => void} onWheel called for a wheel that zoomed, and for one that can do nothing here
 */

export class StagePointer {
  /** @param {import("./stage.js").Stage} stage @param {PointerOptions} options */
  constructor(stage, options) {
    this.stage = stage;
    this.options = options;
    /** @type {{x: number, y: number, at: number, camera: import("../layout/camera.js").View, top: number, isRange: boolean, isFar: boolean} | null} */
    this.drag = null;
    const { canvas, element } = stage;
    element.addEventListener("wheel", (/** @type {WheelEvent} */ event) => this.wheeled(event), { passive: false });
    canvas.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => this.pressed(event));
    canvas.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => this.moved(event));
    canvas.addEventListener("pointerup", (/** @type {PointerEvent} */ event) => this.released(event));
    canvas.addEventListener("pointercancel", () => this.lost());
    canvas.addEventListener("pointerleave", () => options.onHover(-1, { x: 0, y: 0 }));
  }

  /** @param {PointerEvent} event */
  pressed(event) {
    if (event.button !== 0) return;
    const { stage } = this;
    // Touch has no Shift to pan with, so it selects on the axis only.
    const isRange = stage.isTimeline && !event.shiftKey && (event.pointerType !== "touch" || event.offsetY < AXIS);
    this.drag = { x: event.clientX, y: event.clientY, at: stage.valueAt(event.offsetX), camera: stage.camera, top: stage.element.scrollTop, isRange, isFar: false };
    // No text of the page is selected by the way.
    if (event.shiftKey) event.preventDefault();
  }

  /** @param {PointerEvent} event */
  moved(event) {
    const { drag, stage, options } = this;
    if (!drag) return options.onHover(stage.frameUnder(event), { x: event.offsetX, y: event.offsetY });
    const [across, down] = [event.clientX - drag.x, event.clientY - drag.y];
    if (!drag.isFar && (drag.isRange ? Math.abs(across) : Math.hypot(across, down)) < STRAY) return;
    if (!drag.isFar) stage.canvas.setPointerCapture(event.pointerId);
    drag.isFar = true;
    options.onHover(-1, { x: 0, y: 0 });
    if (drag.isRange) return options.onRange(this.rangeTo(event), false);
    stage.element.scrollTop = drag.top - down;
    stage.setCamera(panned(drag.camera, -across / stage.width, stage.ends));
  }

  /** Returns the range from where the drag began to the pointer. @param {PointerEvent} event */
  rangeTo(event) {
    const at = /** @type {any} */ (this.drag).at;
    const here = this.stage.valueAt(Math.min(Math.max(event.offsetX, 0), this.stage.width));
    return { from: Math.min(at, here), to: Math.max(at, here) };
  }

  /** @param {PointerEvent} event */
  released(event) {
    const { drag, options } = this;
    if (drag?.isFar && drag.isRange) options.onRange(this.rangeTo(event), true);
    this.drag = null;
    if (drag && !drag.isFar) options.onClick(this.stage.frameUnder(event));
  }

  /** Ends a drag that the browser took away, with the range as far as it came. */
  lost() {
    const { drag, stage, options } = this;
    this.drag = null;
    if (drag?.isFar && drag.isRange && stage.scene?.range) options.onRange(stage.scene.range, true);
  }

  /** @param {WheelEvent} event */
  wheeled(event) {
    const { stage } = this;
    if (event.ctrlKey || event.metaKey) {
      stage.setCamera(zoomed(stage.camera, Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.004)), stage.valueAt(event.offsetX), stage.ends));
      event.preventDefault();
      this.options.onWheel(true);
      return;
    }
    const across = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (!across || Math.abs(across) < Math.abs(event.shiftKey ? 0 : event.deltaY)) {
      if (stage.element.scrollHeight <= stage.element.clientHeight) this.options.onWheel(false);
      return;
    }
    stage.setCamera(panned(stage.camera, across / stage.width, stage.ends));
    event.preventDefault();
  }
}
