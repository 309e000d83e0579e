// The plots of a difference as pictures that a page draws itself: plotly.js would be several times the report.

import { plotMarks } from "./plot_marks.js";

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 340;
/** Where the diff table looks for plotly; see ui/diff/plotly.js. */
const KEY = Symbol.for("nbkit.plotly");

/** Lets the diff tables of this page draw their plots with what stands in for plotly here. */
export function useStillPlots() {
  /** @type {any} */ (globalThis)[KEY] = Promise.resolve({ newPlot, relayout, purge });
}

/** @type {WeakMap<Element, any[]>} what is drawn in each place */
const drawn = new WeakMap();

/** @param {Element} place @param {any[]} data @param {any} layout */
function newPlot(place, data, layout) {
  drawn.set(place, data);
  const width = place.clientWidth || WIDTH;
  const picture = element("svg", { viewBox: `0 0 ${width} ${layout.height}`, width: "100%", "aria-hidden": "true" });
  picture.append(...plotMarks(data, layout, width, layout.height).map(({ tag, attributes, text, title }) => {
    const mark = element(tag, attributes);
    if (text) mark.textContent = text;
    if (title) mark.appendChild(element("title", {})).textContent = title;
    return mark;
  }));
  place.replaceChildren(picture);
}

/** Draws anew in other colours. @param {Element} place @param {any} layout */
function relayout(place, layout) {
  newPlot(place, drawn.get(place) ?? [], layout);
}

/** @param {Element} place */
function purge(place) {
  drawn.delete(place);
  place.replaceChildren();
}

/** @param {string} tag @param {Record<string, string | number>} attributes */
function element(tag, attributes) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  return made;
}
