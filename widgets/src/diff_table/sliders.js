// Sliders for the least value of each metric, below a histogram of its values.

import { spreadPicture } from "./spread.js";
import { stepOf, STEPS, thresholdAt, thresholdText } from "./scale.js";
import { debounced, h } from "../shared/dom.js";

const PAUSE = 60;

export class Sliders {
  /** @param {{scales: import("./spread.js").Spread[], onChange: (name: string, least: number | null) => void}} options */
  constructor({ scales, onChange }) {
    this.sliders = scales.map((scale) => slider(scale, onChange));
    const group = h("div", { role: "group", "aria-label": "Least value of a metric" }, ...this.sliders.map(({ element }) => element));
    this.element = h("details", { class: "nb-sliders" }, h("summary", {}, "Least values"), group);
    this.element.hidden = !scales.length;
  }

  /** @param {Record<string, number>} thresholds */
  show(thresholds) {
    for (const { scale, set } of this.sliders) set(thresholds[scale.name]);
  }

  destroy() {
    for (const { apply } of this.sliders) apply.cancel();
  }
}

/** @param {any} scale @param {(name: string, least: number | null) => void} onChange */
function slider(scale, onChange) {
  const apply = debounced(() => onChange(scale.name, thresholdAt(Number(input.value), scale)), PAUSE);
  const input = h("input", {
    type: "range", min: 0, max: STEPS, step: 1, value: 0, "aria-label": `Least ${scale.label}`,
    title: "Shows rows of this value or more; at the left end all",
    oninput: () => (tell(thresholdAt(Number(input.value), scale)), apply.later()), onchange: apply.now,
  });
  const output = h("span", { class: "nb-threshold", "aria-hidden": "true" }, "any");
  const picture = spreadPicture(scale);
  const tell = (/** @type {number | null | undefined} */ least) => {
    picture.show(least);
    output.textContent = thresholdText(least);
    input.setAttribute("aria-valuetext", least === null || least === undefined ? "any" : `at least ${least}`);
  };
  const set = (/** @type {number | undefined} */ least) => {
    if (input !== document.activeElement) input.value = String(stepOf(least, scale));
    tell(least);
  };
  set(undefined);
  const track = h("span", { class: "nb-slider-track" }, picture.element, input);
  // The slider stands below the axis alone.
  ["before", "after"].forEach((name, index) => track.style.setProperty(`--nb-${name}`, String(picture.beside[index])));
  return { scale, apply, set, element: h("div", { class: "nb-slider" }, h("span", {}, scale.label), track, output) };
}
