// The plots of a difference: plotly figures in the colours of the page.

import { h } from "../shared/dom.js";
import { watchTheme } from "../shared/theme.js";
import { loadPlotly } from "./plotly.js";

const HEIGHT = 230;
const CONFIG = { displayModeBar: false, responsive: true };

export class Plots {
  /** @param {{fetchPart: (part: number) => Promise<any>}} options */
  constructor({ fetchPart }) {
    this.fetchPart = fetchPart;
    this.element = h("div", { class: "nb-plots" });
    /** @type {any[]} */
    this.drawn = [];
    this.version = 0;
  }

  /** @param {any[]} figures each with title, description, data and layout */
  async show(figures) {
    this.clear();
    const { version } = this;
    if (!figures.length) return;
    const waiting = h("p", { class: "nb-muted", role: "status" }, "Loading the plots…");
    this.element.replaceChildren(waiting);
    try {
      const plotly = await loadPlotly(this.fetchPart);
      if (version !== this.version) return;
      this.plotly = plotly;
      this.unwatch = watchTheme(this.element, () => this.recolor());
      const places = figures.map(({ title, description }) =>
        h("figure", { class: "nb-plot" }, h("figcaption", {}, title), h("div", { role: "img", "aria-label": description })));
      this.element.replaceChildren(...places);
      this.drawn = figures.map((figure, index) => ({ figure, place: places[index].lastElementChild }));
      await Promise.all(this.drawn.map(({ figure, place }) => plotly.newPlot(place, figure.data, this.layout(figure), CONFIG)));
    } catch (error) {
      if (version === this.version) waiting.textContent = `The plots could not be drawn: ${/** @type {Error} */ (error).message}`;
      if (version === this.version) this.element.replaceChildren(waiting);
    }
  }

  /** The figure's layout in the page's colours. @param {any} figure */
  layout({ layout }) {
    const style = getComputedStyle(this.element);
    const line = style.borderTopColor;
    const axis = (/** @type {any} */ own) => ({ gridcolor: line, zerolinecolor: line, linecolor: line, automargin: true, ...own });
    return {
      ...layout, height: HEIGHT, margin: { l: 8, r: 8, t: 6, b: 8 }, showlegend: false,
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: style.color, family: style.fontFamily, size: 11 },
      xaxis: axis(layout.xaxis), yaxis: axis(layout.yaxis),
    };
  }

  recolor() {
    for (const { figure, place } of this.drawn) this.plotly.relayout(place, this.layout(figure));
  }

  clear() {
    this.version += 1;
    this.unwatch?.();
    this.unwatch = undefined;
    for (const { place } of this.drawn) this.plotly.purge(place);
    this.drawn = [];
    this.element.replaceChildren();
  }
}
