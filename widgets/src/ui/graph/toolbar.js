// The tool line: which graph, search with its matches, what is coloured how, and the zoom.

import { debounced, h } from "../dom.js";

const PAUSE = 80;

export class Toolbar {
  /**
   * @param {{graphs: [string, string][], colors: [string, string][], hasValues: boolean, onChange: (change: object) => void, onSearch: (text: string) => void,
   *   onStep: (step: number) => void, onAct: (action: string) => void, onLeave: () => void}} options
   */
  constructor(options) {
    this.options = options;
    this.typed = debounced(() => options.onSearch(this.search.value), PAUSE);
    this.search = h("input", {
      type: "search", class: "nb-search", placeholder: "Search names, ops, modules", "aria-label": "Search nodes and parts", spellcheck: "false", autocomplete: "off",
      oninput: this.typed.later, onkeydown: (/** @type {KeyboardEvent} */ event) => this.keyed(event),
    });
    this.found = h("span", { class: "nb-found" });
    this.steps = h("span", { class: "nb-steps", hidden: true }, button("‹", "Previous match", () => options.onStep(-1)), button("›", "Next match", () => options.onStep(1)));
    this.graph = select("Graph", options.graphs, (graph) => options.onChange({ graph }));
    this.graph.hidden = options.graphs.length < 2;
    this.color = select("Colour", options.colors.map(([value, label]) => [value, `colour: ${label}`]), (color) => options.onChange({ color }));
    this.values = h("input", { type: "checkbox", onchange: () => options.onChange({ hasValues: this.values.checked }) });
    const values = h("label", { class: "nb-graph-values", title: "Show parameters, buffers and constants as boxes", hidden: !options.hasValues }, this.values, " parameters");
    this.outline = button("Outline", "The same graph as an outline (t)", () => options.onAct("outline"));
    this.help = button("?", "Keys", () => options.onAct("help"));
    const zoom = h("span", { class: "nb-steps" }, button("−", "Zoom out", () => options.onAct("farther")), button("+", "Zoom in", () => options.onAct("nearer")),
      button("Fit", "Show everything (0)", () => options.onAct("all")), button("Fold", "Close all parts (c)", () => options.onAct("close")));
    this.element = h("div", { class: "nb-tools", role: "group", "aria-label": "Graph tools" },
      this.graph, h("span", { class: "nb-search-box", role: "search" }, this.search, this.steps, this.found), this.color, values, zoom, this.outline, this.help);
  }

  /** @param {KeyboardEvent} event */
  keyed(event) {
    if (event.key === "Enter") {
      this.typed.now();
      this.options.onStep(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape" && this.search.value) {
      this.clear();
    } else if (event.key === "Escape" || event.key === "ArrowDown") {
      this.options.onLeave();
    } else {
      return event.stopPropagation();
    }
    event.preventDefault();
    event.stopPropagation();
  }

  clear() {
    this.search.value = "";
    this.typed.now();
  }

  /** @param {{graph: string, color: string, hasValues: boolean, isOutline: boolean, isHelp: boolean}} state */
  show({ graph, color, hasValues, isOutline, isHelp }) {
    this.graph.value = graph;
    this.color.value = color;
    this.values.checked = hasValues;
    this.outline.setAttribute("aria-pressed", String(isOutline));
    this.help.setAttribute("aria-expanded", String(isHelp));
  }

  /** @param {string} text what the search found; "" without one @param {boolean} hasMatches */
  showFound(text, hasMatches) {
    this.found.textContent = text;
    this.steps.hidden = !hasMatches;
  }

  destroy() {
    this.typed.cancel();
  }
}

/** @param {string} label @param {[string, string][]} values @param {(value: string) => void} onChange */
function select(label, values, onChange) {
  const element = h("select", { "aria-label": label, title: label, onchange: () => onChange(element.value) }, ...values.map(([value, text]) => h("option", { value }, text)));
  return element;
}

/** @param {string} text @param {string} title @param {() => void} onclick */
function button(text, title, onclick) {
  return h("button", { type: "button", title, "aria-label": text.length === 1 ? title : null, onclick }, text);
}
