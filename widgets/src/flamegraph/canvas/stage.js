// The stage: a scrolling place with the canvas in it, and its camera.

import { between, clamped, panned, revealing, zoomed } from "../layout/camera.js";
import { AXIS, heightOf, ROW, rowAt, topOf } from "../layout/rows.js";
import { frameAt } from "../layout/visible.js";
import { CameraMotion } from "../../shared/picture/camera_motion.js";
import { h } from "../../shared/dom.js";
import { themeOf } from "../../shared/theme.js";
import { Painter } from "./painter.js";
import { StagePointer } from "./pointer.js";

/** How near a pointer must be to a narrow frame. */
const NEAR = 2;
const MOVE_MS = 140;
/** Height up to which the stage grows with its rows, in pixels. */
const HIGHEST = 420;

export class Stage {
  /**
   * @param {{id: string, onCamera: () => void, onDraw: (scene: import("./painter.js").Scene, camera: import("../layout/camera.js").View, width: number) => void}
   *   & import("./pointer.js").PointerOptions} options
   */
  constructor(options) {
    this.options = options;
    /** @type {import("./painter.js").Scene | null} */
    this.scene = null;
    this.camera = { from: 0, to: 1 };
    /** Where the camera is going, which it is at unless it moves. */
    this.goal = this.camera;
    this.frame = 0;
    this.height = 0;
    this.canvas = h("canvas", { class: "nb-flame-canvas", "aria-hidden": "true" });
    this.item = h("div", { role: "treeitem", class: "nb-sr", id: `${options.id}-frame`, "aria-selected": "false" }, "no frame yet");
    this.space = h("div", { class: "nb-flame-space", role: "presentation" }, this.canvas, this.item);
    this.element = h("div", { class: "nb-flame-stage", role: "tree", "aria-label": "Frames", tabindex: "0", "aria-activedescendant": this.item.id }, this.space);
    this.painter = new Painter(this.canvas);
    this.motion = new CameraMotion(MOVE_MS, between, (camera) => this.look(camera));
    this.pointer = new StagePointer(this, options);
    this.element.addEventListener("scroll", () => this.drawSoon(), { passive: true });
    this.resizes = new ResizeObserver(() => (this.drawSoon(), this.options.onCamera()));
    this.resizes.observe(this.element);
  }

  destroy() {
    this.resizes?.disconnect();
    window.cancelAnimationFrame(this.frame);
    this.motion.stop();
  }

  get ends() {
    return this.scene ? this.scene.view.layout : { min: 0, max: 1 };
  }

  /** Tells whether the pointer is down, so that a focus is not one by keys. */
  get isPressed() {
    return this.pointer.drag !== null;
  }

  get whole() {
    return { from: this.ends.min, to: this.ends.max };
  }

  get isZoomed() {
    const { goal, ends } = this;
    return goal.to - goal.from < (ends.max - ends.min) * (1 - 1e-9);
  }

  get width() {
    return this.space.clientWidth;
  }

  get isTimeline() {
    return this.scene?.view.isTimeline === true;
  }

  /** Returns the value of the axis at a place on the canvas. @param {number} x in its pixels */
  valueAt(x) {
    return this.camera.from + (x / this.width) * (this.camera.to - this.camera.from);
  }

  /** Shows another scene; a new view starts from the whole of it. @param {import("./painter.js").Scene} scene */
  setScene(scene) {
    const isOther = this.scene?.view !== scene.view;
    const isNew = isOther || this.scene?.isFlame !== scene.isFlame;
    this.scene = scene;
    if (isOther) this.camera = this.goal = this.whole;
    if (isNew) {
      const height = heightOf(scene.view.layout);
      this.height = Math.max(this.height, Math.min(height + 2, HIGHEST));
      this.element.style.setProperty("--nb-stage-height", `${this.height}px`);
      this.space.style.height = `${height}px`;
      this.element.scrollTop = scene.isFlame ? height : 0;
      this.options.onCamera();
    }
    this.drawSoon();
  }

  drawSoon() {
    this.frame ||= window.requestAnimationFrame(() => this.draw());
  }

  /** Draws at once. */
  draw() {
    window.cancelAnimationFrame(this.frame);
    this.frame = 0;
    const [width, height] = [this.width, this.element.clientHeight];
    if (!this.scene || !width || !height) return;
    const scale = window.devicePixelRatio || 1;
    const [across, down] = [Math.round(width * scale), Math.round(height * scale)];
    if (this.canvas.width !== across || this.canvas.height !== down) {
      this.canvas.width = across;
      this.canvas.height = down;
      this.canvas.style.height = `${height}px`;
    }
    this.painter.setTheme(themeOf(this.canvas), scale);
    this.painter.paint(this.scene, { camera: this.camera, width, height, top: this.element.scrollTop });
    this.options.onDraw(this.scene, this.camera, width);
  }

  /** @param {import("../layout/camera.js").View} camera */
  setCamera(camera) {
    this.motion.stop();
    this.goal = clamped(camera, this.ends);
    this.look(this.goal);
  }

  /** @param {import("../layout/camera.js").View} camera */
  look(camera) {
    this.camera = camera;
    this.options.onCamera();
    this.drawSoon();
  }

  /** Moves to a view, smoothly where motion is welcome. @param {import("../layout/camera.js").View} camera */
  moveTo(camera) {
    this.goal = clamped(camera, this.ends);
    this.motion.run(this.camera, this.goal);
  }

  /** @param {number} factor */
  zoom(factor) {
    const focus = this.scene?.focus ?? -1;
    const middle = (this.goal.from + this.goal.to) / 2;
    const about = focus < 0 ? middle : Math.min(Math.max(this.centerOf(focus), this.goal.from), this.goal.to);
    this.moveTo(zoomed(this.goal, factor, about, this.ends));
  }

  /** @param {number} fraction */
  pan(fraction) {
    this.moveTo(panned(this.goal, fraction, this.ends));
  }

  /** @param {number} frame */
  centerOf(frame) {
    const { layout, frames } = /** @type {import("./painter.js").Scene} */ (this.scene).view;
    return layout.left[frame] + frames.width[frame] / 2;
  }

  /** Brings a frame into view, wide enough to be seen. @param {number} frame */
  reveal(frame) {
    const { view, isFlame } = /** @type {import("./painter.js").Scene} */ (this.scene);
    const camera = revealing(this.goal, view.layout.left[frame], view.frames.width[frame], this.ends);
    if (camera !== this.goal) this.moveTo(camera);
    this.revealRow(topOf(view.layout, view.layout.row[frame], isFlame));
  }

  /** @param {number} top */
  revealRow(top) {
    const { scrollTop, clientHeight } = this.element;
    if (top - AXIS < scrollTop) this.element.scrollTop = top - AXIS;
    else if (top + ROW > scrollTop + clientHeight) this.element.scrollTop = top + ROW - clientHeight + 2;
  }

  /** Returns where a frame is on the canvas, in its pixels. @param {number} frame */
  pointOf(frame) {
    const { view, isFlame } = /** @type {import("./painter.js").Scene} */ (this.scene);
    const perUnit = this.width / (this.camera.to - this.camera.from);
    const x = Math.min(Math.max((this.centerOf(frame) - this.camera.from) * perUnit, 0), this.width);
    return { x, y: topOf(view.layout, view.layout.row[frame], isFlame) + ROW / 2 - this.element.scrollTop };
  }

  /** Says in the tree which frame has the focus. @param {string} text @param {{level: number, position: number, among: number, isSelected: boolean}} position */
  describe(text, { level, position, among, isSelected }) {
    this.item.textContent = text;
    const attributes = { level, posinset: position, setsize: among, selected: isSelected };
    for (const [name, value] of Object.entries(attributes)) this.item.setAttribute(`aria-${name}`, String(value));
  }

  /** @param {{offsetX: number, offsetY: number}} event */
  frameUnder({ offsetX, offsetY }) {
    if (!this.scene || offsetY < AXIS) return -1;
    const { view, isFlame } = this.scene;
    const row = rowAt(view.layout, offsetY + this.element.scrollTop, isFlame);
    return frameAt(view.layout.rows, row, this.valueAt(offsetX), (NEAR * (this.camera.to - this.camera.from)) / this.width);
  }
}
