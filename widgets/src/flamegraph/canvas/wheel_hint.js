// A hint over the picture that says how to zoom, where a wheel alone does nothing.

import { h } from "../../shared/dom.js";

const SHOWN_MS = 1600;
/** How often it is shown at most. */
const MOST = 3;

export class WheelHint {
  constructor() {
    const key = /Mac|iPhone|iPad/.test(navigator.platform) ? "⌘" : "Ctrl";
    this.element = h("div", { class: "nb-wheel-hint", "aria-hidden": "true", hidden: true }, `Hold ${key} and scroll to zoom`);
    this.left = MOST;
    this.timer = 0;
  }

  /** Shows the hint for a moment; one that is shown stays. */
  show() {
    if (this.timer || this.left <= 0) return;
    this.left -= 1;
    this.element.hidden = false;
    this.timer = window.setTimeout(() => this.hide(), SHOWN_MS);
  }

  hide() {
    window.clearTimeout(this.timer);
    this.timer = 0;
    this.element.hidden = true;
  }

  /** Never shows it again: whoever zooms by the wheel knows how. */
  end() {
    this.left = 0;
    this.hide();
  }
}
