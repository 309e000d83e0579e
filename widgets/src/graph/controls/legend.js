// The legend: the colors that there are here, and how many nodes have each.

import { legendOf } from "../model/legend.js";
import { counted } from "../../shared/units.js";
import { h } from "../../shared/dom.js";

export class Legend {
  constructor() {
    this.caption = h("span", { class: "nb-graph-caption", hidden: true });
    this.list = h("ul", { "aria-label": "Colors" });
    this.note = h("span", { class: "nb-muted" });
    this.element = h("div", { class: "nb-graph-legend" }, this.caption, this.list, this.note);
  }

  /** @param {import("../model/colors.js").Colors} colors @param {string} note what is not shown */
  show(colors, note) {
    const { caption, entries: shown, others } = legendOf(colors);
    this.caption.textContent = caption;
    this.caption.hidden = !caption;
    this.list.replaceChildren(...shown.map(({ category, count }) => item(category, count)), ...others.map((text) => h("li", {}, text)));
    this.note.textContent = note;
    this.element.hidden = !shown.length && !note;
  }
}

/** Returns the color of a step of one hue on the page. @param {string} color @param {number} strength */
export function stepColor(color, strength) {
  return `color-mix(in srgb, ${color} ${Math.round(100 * strength)}%, var(--nb-bg))`;
}

/** @param {import("../../shared/picture/palette.js").Category} category @param {number} count */
function item({ label, color, pattern, strength }, count) {
  const swatch = h("span", { class: "nb-graph-swatch", "data-pattern": pattern, "data-step": strength !== undefined, "aria-hidden": "true" });
  swatch.style.setProperty("--nb-swatch", strength === undefined ? color : stepColor(color, strength));
  return h("li", {}, swatch, h("span", { class: "nb-graph-name", title: label }, label), count ? h("span", { class: "nb-muted" }, counted(count, "node")) : null);
}
