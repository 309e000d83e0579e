// The legend: each category with its color, pattern, name and share of the self time.

import { counted, share } from "../../shared/units.js";
import { h } from "../../shared/dom.js";
import { CATEGORIES } from "../../shared/picture/palette.js";
import { patternImage } from "../canvas/patterns.js";

export class Legend {
  constructor() {
    this.list = h("ul", { "aria-label": "Colors" });
    this.note = h("span", { class: "nb-muted" });
    this.element = h("div", { class: "nb-flame-legend" }, this.list, this.note);
  }

  /**
   * @param {import("../../shared/picture/palette.js").Category[]} categories
   * @param {{time: Float64Array, count: Int32Array}} sums
   * @param {string | null} note beside the colors of a difference; null for other colors
   */
  show(categories, { time, count }, note) {
    const isDifference = note !== null;
    const whole = time.reduce((sum, value) => sum + value, 0);
    const order = categories.map((_, code) => code).filter((code) => count[code] > 0);
    // Phases stand in the same order everywhere.
    if (!isDifference && categories !== CATEGORIES.phase) order.sort((a, b) => time[b] - time[a]);
    this.note.textContent = note ?? "";
    this.list.replaceChildren(...order.map((code) => {
      const amount = isDifference ? counted(count[code], "frame") : time[code] > 0 ? share(time[code] / whole) : "";
      return item(categories[code], amount);
    }));
  }
}

/** @param {import("../../shared/picture/palette.js").Category} category @param {string} amount */
function item({ label, color, pattern }, amount) {
  const swatch = h("span", { class: "nb-swatch", "aria-hidden": "true" });
  swatch.style.backgroundColor = color;
  swatch.style.backgroundImage = patternImage(pattern);
  return h("li", {}, swatch, h("span", {}, label), h("span", { class: "nb-muted" }, amount));
}
