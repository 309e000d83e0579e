// The stage: the canvas with the picture, its camera, pointers, wheel and drag, and the minimap in its corner.

import { between, centered, fitted, following, kept, opening, panned, revealing, widened, zoomed } from "../layout/camera.js";
import { CameraMotion } from "../../shared/picture/camera_motion.js";
import { h } from "../../shared/dom.js";
import { isSame, PLAIN, themeOf } from "../../shared/theme.js";
import { Minimap } from "./minimap.js";
import { Painter, withMixed } from "./painter.js";

/** How far a pointer may stray before a click is a drag. */
const STRAY = 4;
const MOVE_MS = 180;
/** Scale at which all is still shown at once. */
const READABLE = 0.7;

export class Stage {
  /** @param {{label: string, onHover: (item: number, point: {x: number, y: number}) => void, onClick: (item: number, isDouble: boolean, point: {x: number, y: number}) => void, onCamera: () => void, onSeen: () => void}} options `onSeen`: it has a size now, which it had not when it was opened */
  constructor(options) {
    this.options = options;
    /** @type {import("./painter.js").Look | null} */
    this.look = null;
    /** @type {import("../layout/camera.js").Camera} */
    this.camera = { x: 0, y: 0, scale: 1 };
    this.goal = this.camera;
    this.frame = 0;
    this.theme = withMixed(PLAIN);
    /** The size that was last drawn for. @type {{width: number, height: number} | null} */
    this.size = null;
    /** @type {Map<number, {x: number, y: number}>} */
    this.pointers = new Map();
    /** @type {any} */
    this.drag = null;
    this.canvas = h("canvas", { class: "nb-graph-canvas", "aria-hidden": "true" });
    this.minimap = new Minimap({ onMove: (x, y) => this.setCamera(centered({ x, y, width: 0, height: 0 }, this.camera.scale, this.view)) });
    this.element = h("div", { class: "nb-graph-stage", role: "application", "aria-roledescription": "graph", "aria-label": options.label, tabindex: "0" },
      this.canvas, this.minimap.canvas);
    this.painter = new Painter(/** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d")));
    this.motion = new CameraMotion(MOVE_MS, between, (camera) => this.show(camera));
    this.listen();
  }

  listen() {
    this.element.addEventListener("wheel", (/** @type {WheelEvent} */ event) => this.wheeled(event), { passive: false });
    this.canvas.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => this.pressed(event));
    this.canvas.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => this.pointed(event));
    this.canvas.addEventListener("pointerup", (/** @type {PointerEvent} */ event) => this.released(event));
    this.canvas.addEventListener("pointercancel", (/** @type {PointerEvent} */ event) => this.lost(event));
    this.canvas.addEventListener("pointerleave", () => this.options.onHover(-1, { x: 0, y: 0 }));
    this.canvas.addEventListener("dblclick", (/** @type {MouseEvent} */ event) => this.options.onClick(this.itemUnder(event), true, this.pictureAt(event)));
    this.resizes = new ResizeObserver(() => this.resized());
    this.resizes.observe(this.element);
  }

  destroy() {
    this.resizes?.disconnect();
    window.cancelAnimationFrame(this.frame);
    this.motion.stop();
  }

  get view() {
    return { width: this.element.clientWidth, height: this.element.clientHeight };
  }

  get isPressed() {
    return this.pointers.size > 0;
  }

  resized() {
    // What was laid out before it had a size opens again as soon as it has one.
    if (this.isUnseen && this.view.width) this.options.onSeen();
    const [{ width, height }, before] = [this.view, this.size ?? this.view];
    this.size = { width, height };
    // The middle stays where it is.
    if (width !== before.width || height !== before.height) this.setCamera(panned(this.camera, (before.width - width) / 2, (before.height - height) / 2));
    this.drawSoon();
  }

  /** Shows the picture from its start. */
  openWhole() {
    this.isUnseen = !this.view.width;
    this.size = this.view;
    if (this.look) this.setCamera(opening(this.look.drawn, this.view));
  }

  /** @param {import("./painter.js").Look} look */
  setLook(look) {
    const isOther = this.look?.drawn !== look.drawn || this.look?.colors !== look.colors;
    this.look = look;
    if (isOther) this.renewMap();
    this.drawSoon();
  }

  renewMap() {
    if (this.look) this.minimap.renew(this.look.drawn, this.look.colors, this.theme, window.devicePixelRatio || 1);
  }

  /** Takes the colors of the page. */
  takeTheme() {
    const theme = withMixed(themeOf(this.canvas));
    if (isSame(theme, this.theme)) return;
    this.theme = theme;
    this.painter.setTheme(theme);
    this.renewMap();
  }

  drawSoon() {
    this.frame ||= window.requestAnimationFrame(() => this.draw());
  }

  /** Draws at once. */
  draw() {
    window.cancelAnimationFrame(this.frame);
    this.frame = 0;
    const { width, height } = this.view;
    if (!this.look || !width || !height) return;
    const ratio = window.devicePixelRatio || 1;
    const [across, down] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (this.canvas.width !== across || this.canvas.height !== down) [this.canvas.width, this.canvas.height] = [across, down];
    this.takeTheme();
    this.painter.paint(this.look, this.camera, this.view, ratio);
    this.minimap.draw(this.camera, this.view, this.look.drawn, this.theme);
  }

  /** @param {import("../layout/camera.js").Camera} camera */
  setCamera(camera) {
    this.motion.stop();
    this.goal = this.look ? kept(camera, this.look.drawn, this.view) : camera;
    this.show(this.goal);
  }

  /** @param {import("../layout/camera.js").Camera} camera */
  show(camera) {
    this.camera = camera;
    this.options.onCamera();
    this.drawSoon();
  }

  /** Moves there, smoothly where motion is welcome. @param {import("../layout/camera.js").Camera} camera */
  moveTo(camera) {
    if (!this.look) return this.setCamera(camera);
    this.goal = kept(camera, this.look.drawn, this.view);
    this.motion.run(this.camera, this.goal);
  }

  /** Shows all of the picture. */
  fit() {
    if (this.look) this.moveTo(fitted({ x: 0, y: 0, ...this.look.drawn }, this.view));
  }

  /** @param {import("../layout/camera.js").Area} area */
  fitTo(area) {
    this.moveTo(fitted(area, this.view));
  }

  /** @param {import("../layout/camera.js").Area} area @param {number} [around] how much beside it is to be seen, too */
  reveal(area, around = 0) {
    this.moveTo(revealing(this.goal, widened(area, around, this.goal, this.view), this.view));
  }

  /** Moves the camera after a box has changed: shows all if it can be read, else keeps the head of the box where it was. @param {import("../layout/camera.js").Area} before @param {import("../layout/camera.js").Area} after */
  follow(before, after) {
    if (!this.look) return;
    const whole = fitted({ x: 0, y: 0, ...this.look.drawn }, this.view);
    if (whole.scale >= Math.min(this.goal.scale, READABLE)) return this.setCamera(whole);
    const { scale } = this.goal;
    const seen = { ...after, height: Math.min(after.height, (this.view.height * 0.9) / scale) };
    this.setCamera(revealing(following(this.goal, before, after), seen, this.view));
  }

  /** @param {number} factor @param {{x: number, y: number}} [about] */
  zoom(factor, about = { x: this.view.width / 2, y: this.view.height / 2 }) {
    this.moveTo(zoomed(this.goal, factor, about));
  }

  /** @param {number} across @param {number} down parts of the view */
  pan(across, down) {
    this.moveTo(panned(this.goal, across * this.view.width, down * this.view.height));
  }

  /** Returns the position of a box in view. @param {import("../layout/camera.js").Area} area */
  pointOf({ x, y, width, height }) {
    const { camera } = this;
    return { x: (x + width / 2 - camera.x) * camera.scale, y: (y + Math.min(height, 40) - camera.y) * camera.scale };
  }

  /** Returns a point of the view in the picture. @param {{offsetX: number, offsetY: number}} event */
  pictureAt({ offsetX, offsetY }) {
    return { x: this.camera.x + offsetX / this.camera.scale, y: this.camera.y + offsetY / this.camera.scale };
  }

  /** Returns the innermost item at a point; -1 for none. @param {{offsetX: number, offsetY: number}} event */
  itemUnder(event) {
    const { x, y } = this.pictureAt(event);
    const box = this.look?.drawn.boxes.findLast((drawn) => x >= drawn.x && x < drawn.x + drawn.width && y >= drawn.y && y < drawn.y + drawn.height);
    return box?.item ?? -1;
  }

  /** Zooms by the wheel; without Ctrl that is the page's until the picture has the focus. @param {WheelEvent} event */
  wheeled(event) {
    const isZoom = event.ctrlKey || event.metaKey;
    if (!isZoom && document.activeElement !== this.element) return;
    const unit = event.deltaMode ? 16 : 1;
    const about = this.pointIn(event);
    if (event.shiftKey) this.setCamera(panned(this.camera, event.deltaY * unit || event.deltaX * unit, 0));
    else this.setCamera(zoomed(this.camera, Math.exp(-event.deltaY * unit * (isZoom ? 0.005 : 0.002)), about));
    event.preventDefault();
  }

  /** @param {{clientX: number, clientY: number}} event */
  pointIn(event) {
    const { left, top } = this.element.getBoundingClientRect();
    return { x: event.clientX - left - this.element.clientLeft, y: event.clientY - top - this.element.clientTop };
  }

  /** @param {PointerEvent} event */
  pressed(event) {
    if (event.button !== 0) return;
    this.pointers.set(event.pointerId, this.pointIn(event));
    this.drag = { isFar: this.pointers.size > 1, start: this.pointIn(event) };
  }

  /** @param {PointerEvent} event */
  pointed(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) return this.options.onHover(this.itemUnder(event), this.pointIn(event));
    const now = this.pointIn(event);
    if (!this.drag.isFar && Math.hypot(now.x - this.drag.start.x, now.y - this.drag.start.y) < STRAY) return;
    if (!this.drag.isFar) this.canvas.setPointerCapture(event.pointerId);
    this.drag.isFar = true;
    this.options.onHover(-1, now);
    const other = [...this.pointers].find(([id]) => id !== event.pointerId)?.[1];
    this.pointers.set(event.pointerId, now);
    if (!other) return this.setCamera(panned(this.camera, before.x - now.x, before.y - now.y));
    const apart = (/** @type {{x: number, y: number}} */ pointer) => Math.max(Math.hypot(pointer.x - other.x, pointer.y - other.y), 1);
    const moved = panned(this.camera, (before.x - now.x) / 2, (before.y - now.y) / 2);
    this.setCamera(zoomed(moved, apart(now) / apart(before), { x: (now.x + other.x) / 2, y: (now.y + other.y) / 2 }));
  }

  /** @param {PointerEvent} event */
  released(event) {
    const isClick = this.pointers.size === 1 && this.drag && !this.drag.isFar;
    this.lost(event);
    if (isClick) this.options.onClick(this.itemUnder(event), false, this.pictureAt(event));
  }

  /** @param {PointerEvent} event */
  lost(event) {
    this.pointers.delete(event.pointerId);
    if (!this.pointers.size) this.drag = null;
  }
}
