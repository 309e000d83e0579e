// The way of the zoom: which frame it stands on and how it came there.

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
