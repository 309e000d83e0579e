// The tool line: which graph, search with its matches, what is colored how, and the zoom.

import { button, h } from "../../shared/dom.js";
import { SearchField } from "../../shared/picture/search_field.js";

const PAUSE = 80;

export class Toolbar {
  /**
   * @param {{label: string, graphs: [string, string][], colors: [string, string][], hasValues: boolean, onChange: (change: object) => void, onSearch: (text: string) => void,
   *   onStep: (step: number) => void, onAct: (action: string) => void, onLeave: () => void}} options
   */
  constructor(options) {
    this.search = new SearchField({ placeholder: "Search names, ops, modules", pause: PAUSE, ...options });
    this.graph = select("Graph", options.graphs, (graph) => options.onChange({ graph }));
    this.graph.hidden = options.graphs.length < 2;
    this.color = select("Color", options.colors.map(([value, label]) => [value, `color: ${label}`]), (color) => options.onChange({ color }));
    this.values = h("input", { type: "checkbox", onchange: () => options.onChange({ hasValues: this.values.checked }) });
    const values = h("label", { class: "nb-graph-values", title: "Show parameters, buffers and constants as boxes", hidden: !options.hasValues }, this.values, " parameters");
    this.outline = button("Outline", "The same graph as an outline (t)", () => options.onAct("outline"));
    this.help = button("?", "Keys", () => options.onAct("help"));
    const zoom = h("span", { class: "nb-steps" }, button("−", "Zoom out", () => options.onAct("farther")), button("+", "Zoom in", () => options.onAct("nearer")),
      button("Fit", "Show all (0)", () => options.onAct("all")), button("Fold", "Close all parts (c)", () => options.onAct("close")));
    const save = h("span", { class: "nb-steps" }, button("SVG", "Save the picture as SVG (v)", () => options.onAct("svg")), button("PNG", "Save the picture as PNG (b)", () => options.onAct("png")));
    this.element = h("div", { class: "nb-tools", role: "group", "aria-label": "Graph tools" },
      this.graph, this.search.element, this.color, values, zoom, save, this.outline, this.help);
  }

  /** @param {{graph: string, color: string, hasValues: boolean, isOutline: boolean, isHelp: boolean}} state */
  show({ graph, color, hasValues, isOutline, isHelp }) {
    this.graph.value = graph;
    this.color.value = color;
    this.values.checked = hasValues;
    this.outline.setAttribute("aria-pressed", String(isOutline));
    this.help.setAttribute("aria-expanded", String(isHelp));
  }

  destroy() {
    this.search.destroy();
  }
}

/** @param {string} label @param {[string, string][]} values @param {(value: string) => void} onChange */
function select(label, values, onChange) {
  const element = h("select", { "aria-label": label, title: label, onchange: () => onChange(element.value) }, ...values.map(([value, text]) => h("option", { value }, text)));
  return element;
}
