// The tooltip of a picture: facts of what is under the pointer or with the keyboard's focus.

import { tooltipPlace } from "./tooltip_place.js";
import { h } from "../dom.js";

/** Longest text shown; the detail pane has all of it. */
const LONGEST = 160;

export class Tooltip {
  constructor() {
    this.isOfFocus = false;
    this.element = h("div", { class: "nb-tip", hidden: true, "aria-hidden": "true" });
  }

  /** @param {string} name @param {[string, string][]} facts @param {boolean} isOfFocus whether the keyboard asked for it */
  show(name, facts, isOfFocus) {
    const rows = facts.flatMap(([label, text]) => [h("dt", {}, label), h("dd", {}, cut(text))]);
    this.element.replaceChildren(h("strong", {}, cut(name)), h("dl", {}, ...rows));
    this.element.hidden = false;
    this.isOfFocus = isOfFocus;
  }

  /** Puts it beside a point of an element, inside of what holds both. @param {{x: number, y: number}} point @param {HTMLElement} element */
  place(point, element) {
    if (this.element.hidden || !this.element.parentElement) return;
    const [from, room] = [element.getBoundingClientRect(), this.element.parentElement.getBoundingClientRect()];
    const local = { x: point.x + from.left - room.left, y: point.y + from.top - room.top };
    const { left, top } = tooltipPlace(local, { width: this.element.offsetWidth, height: this.element.offsetHeight }, room);
    this.element.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
  }

  hide() {
    this.element.hidden = true;
    this.isOfFocus = false;
  }
}

/** @param {string} text */
function cut(text) {
  return text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text;
}
