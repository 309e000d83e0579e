// The motion of a picture's camera from where it is to where it goes, smooth where motion is welcome.

/** @template Camera */
export class CameraMotion {
  /** @param {number} duration in milliseconds @param {(start: Camera, end: Camera, at: number) => Camera} between `at` from 0 to 1 @param {(camera: Camera) => void} show */
  constructor(duration, between, show) {
    this.duration = duration;
    this.between = between;
    this.show = show;
    this.frame = 0;
  }

  /** @param {Camera} start @param {Camera} end */
  run(start, end) {
    this.stop();
    if (window.matchMedia("(prefers-reduced-motion: reduce)").matches) return this.show(end);
    const from = performance.now();
    const step = (/** @type {number} */ now) => {
      const at = Math.min(Math.max((now - from) / this.duration, 0), 1);
      this.show(at === 1 ? end : this.between(start, end, at));
      if (at < 1) this.frame = window.requestAnimationFrame(step);
    };
    this.frame = window.requestAnimationFrame(step);
  }

  stop() {
    window.cancelAnimationFrame(this.frame);
  }
}
