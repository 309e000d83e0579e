// The breadcrumb: from all frames down to the frame that is zoomed to, and one step back.

import { h } from "../../shared/dom.js";

/** Steps of a long path that are shown: these first ones and these last ones. */
const FIRST = 1;
const LAST = 5;

export class Crumbs {
  /** @param {{onGo: (frame: number) => void, onBack: () => void}} options frame -1 is all */
  constructor({ onGo, onBack }) {
    this.onGo = onGo;
    this.back = h("button", { type: "button", class: "nb-back", title: "One step back (Esc)", onclick: onBack }, "← Back");
    this.list = h("ol", {});
    this.place = h("span", { class: "nb-flame-place nb-muted" });
    this.element = h("nav", { class: "nb-flame-crumbs", "aria-label": "Zoom" }, this.back, this.list, this.place);
  }

  /** Says what is in view, in what order. @param {string} text @param {boolean} canGoBack */
  showPlace(text, canGoBack) {
    this.back.disabled = !canGoBack;
    if (this.place.textContent !== text) this.place.textContent = text;
  }

  /** @param {{frame: number, name: string}[]} path from the top */
  show(path) {
    const steps = [{ frame: -1, name: "all" }, ...path];
    const isCut = steps.length > FIRST + LAST + 1;
    const shown = isCut ? [...steps.slice(0, FIRST), null, ...steps.slice(-LAST)] : steps;
    this.list.replaceChildren(...shown.map((step, index) => (step ? this.step(step, index === shown.length - 1) : h("li", {}, `${steps.length - FIRST - LAST} more`))));
  }

  /** @param {{frame: number, name: string}} step @param {boolean} isHere */
  step({ frame, name }, isHere) {
    const attributes = { type: "button", class: "nb-crumb", title: name, "aria-current": isHere ? "location" : null, onclick: () => this.onGo(frame) };
    return h("li", {}, h("button", attributes, name));
  }
}
