// The way of the zoom: which frame it stands on, how it came there, and which frame holds all that is in view.

import { fitted } from "./camera.js";

/** What of a frame may be out of view, by rounding, in parts of the view. */
const SLACK = 1e-6;

/**
 * Returns the nearest frame from `top` up that holds all that is in view; -1 if none does.
 * @param {{parent: Int32Array, width: Float64Array}} frames @param {{left: Float64Array, min: number, max: number}} layout
 * @param {number} top @param {import("./camera.js").View} camera
 */
export function holding({ parent, width }, layout, top, camera) {
  const slack = SLACK * (camera.to - camera.from);
  let frame = top;
  for (; frame >= 0; frame = parent[frame]) {
    const { from, to } = fitted(layout.left[frame], width[frame], layout);
    if (camera.from >= from - slack && camera.to <= to + slack) break;
  }
  return frame;
}

export class Zoom {
  constructor() {
    /** The frame that is zoomed to; -1 is everything. */
    this.top = -1;
    /** @type {{camera: import("./camera.js").View, top: number}[]} */
    this.steps = [];
  }

  /** Goes to a frame and remembers where it came from. @param {number} top @param {import("./camera.js").View} camera */
  go(top, camera) {
    const last = this.steps.at(-1);
    if (top !== this.top || !last) this.note(camera);
    this.top = top;
  }

  /** Remembers where the camera was before it goes elsewhere. @param {import("./camera.js").View} camera */
  note(camera) {
    this.steps.push({ camera, top: this.top });
  }

  /** Returns the camera of the step before, `all` where there is none. @param {import("./camera.js").View} all */
  back(all) {
    const step = this.steps.pop() ?? { camera: all, top: -1 };
    this.top = step.top;
    return step.camera;
  }

  get canGoBack() {
    return this.steps.length > 0;
  }
}
