// The live part of a report: draws each trace's widgets in place of their still twins, and lets links select in them.

import { PANELS } from "./panels.js";

/** How far from the window the widgets of a trace are drawn already. */
const AHEAD = "800px";

/** Draws the traces of a report as they come near the window. @param {Document} page */
export function startReport(page) {
  const traces = [...page.querySelectorAll(".nbkit-trace")].map((element) => new TraceSection(/** @type {HTMLElement} */ (element)));
  const observer = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      observer.unobserve(entry.target);
      traces.find(({ element }) => element === entry.target)?.draw();
    }
  }, { rootMargin: AHEAD });
  for (const { element } of traces) observer.observe(element);
  page.addEventListener("click", (event) => {
    const link = /** @type {Element} */ (event.target).closest?.("a[data-value]");
    const trace = link && traces.find(({ element }) => element.id === link.getAttribute("data-trace"));
    if (trace) follow(/** @type {HTMLElement} */ (link), trace);
  });
}

/** Selects what a link is about, once the widget is there. @param {HTMLElement} link @param {TraceSection} trace */
async function follow(link, trace) {
  await trace.draw();
  const { widget = "", value } = link.dataset;
  trace.models[widget]?.set(PANELS[widget].selects, Number(value));
}

class TraceSection {
  /** @param {HTMLElement} element */
  constructor(element) {
    this.element = element;
    /** @type {Record<string, any>} by the name of the widget */
    this.models = {};
    /** @type {Promise<void> | null} */
    this.drawn = null;
  }

  /** Draws the widgets, once. */
  draw() {
    this.drawn ??= this.drawAll();
    return this.drawn;
  }

  async drawAll() {
    for (const panel of this.element.querySelectorAll(".nbkit-panel:has(script)")) await this.drawPanel(/** @type {HTMLElement} */ (panel));
  }

  /** Draws a widget in place of its twin, which stays if anything goes wrong. @param {HTMLElement} panel */
  async drawPanel(panel) {
    const name = panel.dataset.widget ?? "";
    const [live, twin, data] = [".nbkit-live", ".nbkit-twin", "script"].map((part) => /** @type {HTMLElement} */ (panel.querySelector(part)));
    try {
      const packed = Uint8Array.from(atob(data.textContent ?? ""), (character) => character.charCodeAt(0));
      const model = await PANELS[name].modelOf(packed);
      live.hidden = false;
      await PANELS[name].render({ model, el: live });
      twin.hidden = true;
      this.models[name] = model;
    } catch (error) {
      live.hidden = true;
      console.error(error);
    }
  }
}
