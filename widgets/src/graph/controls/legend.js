// The legend: the colours that there are here, and how many nodes have each.

import { legendOf } from "../model/legend.js";
import { counted } from "../../shared/units.js";
import { h } from "../../shared/dom.js";

export class Legend {
  constructor() {
    this.list = h("ul", { "aria-label": "Colours" });
    this.note = h("span", { class: "nb-muted" });
    this.element = h("div", { class: "nb-graph-legend" }, this.list, this.note);
  }

  /** @param {import("../model/colors.js").Colors} colors @param {string} note what is not shown */
  show(colors, note) {
    const { entries: shown, rest } = legendOf(colors);
    this.list.replaceChildren(...shown.map(({ category, count }) => item(category, count)), ...(rest > 0 ? [h("li", {}, `and ${rest} more`)] : []));
    this.note.textContent = note;
    this.element.hidden = !shown.length && !note;
  }
}

/** @param {import("../../shared/picture/palette.js").Category} category @param {number} count */
function item({ label, color, pattern }, count) {
  const swatch = h("span", { class: "nb-graph-swatch", "data-pattern": pattern, "aria-hidden": "true" });
  swatch.style.setProperty("--nb-swatch", color);
  return h("li", {}, swatch, h("span", { class: "nb-graph-name", title: label }, label), count ? h("span", { class: "nb-muted" }, counted(count, "node")) : null);
}
