// The widgets of one trace of a report, with one selection; each is drawn in place of its static view.

import { fromBase64 } from "../shared/base64.js";
import { backButton } from "../shared/finding_back.js";
import { linkTables } from "./link.js";
import { PANELS } from "./panels.js";

export class TraceSection {
  /** @param {Element} element */
  constructor(element) {
    this.element = element;
    /** @type {Record<string, import("./panels.js").Source>} by the name of the widget */
    this.sources = {};
    /** @type {Promise<void> | null} */
    this.drawn = null;
  }

  /** Draws the widgets, once. */
  draw() {
    this.drawn ??= this.drawAll();
    return this.drawn;
  }

  /** Selects an op, or a row, in a widget, once that is there. @param {string} name @param {number} value */
  async select(name, value) {
    await this.draw();
    this.sources[name]?.model.set(PANELS[name].selects, value);
  }

  async drawAll() {
    const panels = [...this.element.querySelectorAll(".nbkit-panel")];
    // The op table comes last in the page, and others share its data.
    for (const panel of [...panels].reverse()) await this.guarded(panel, () => this.unpack(panel));
    const { flamegraph = null, graph = null, op_table: ops = null, diff_table: diffs = null, alignment_table: pairs = null } = this.sources;
    // Before they are drawn: a table must not ask for its rows before it knows what it is limited to.
    linkTables({ flame: flamegraph && flamegraph.model, graph: graph && graph.model, ops, diffs, pairs });
    for (const panel of panels) await this.guarded(panel, () => this.render(panel));
    for (const panel of panels) this.leadBack(panel);
  }

  /** Leads from a selected row to the finding whose link leads to it. @param {Element} panel */
  leadBack(panel) {
    const [name, source] = [nameOf(panel), this.sources[nameOf(panel)]];
    const to = `[data-trace="${this.element.id}"][data-widget="${name}"][data-value]`;
    const links = /** @type {HTMLElement[]} */ ([...this.element.ownerDocument.querySelectorAll(`li[class^="nbkit-"] a${to}`)]);
    if (!source || !links.length) return;
    const selected = () => source.model.get(PANELS[name].selects);
    const finding = () => links.find(({ dataset }) => Number(dataset.value) === selected())?.closest("li");
    const back = backButton(finding);
    const mark = () => {
      back.hidden = !finding();
    };
    partsOf(panel).live.before(back);
    source.model.on(`change:${PANELS[name].selects}`, mark);
    mark();
  }

  /** @param {Element} panel */
  async unpack(panel) {
    const name = nameOf(panel);
    this.sources[name] = await PANELS[name].source(fromBase64(panel.querySelector("script")?.textContent ?? ""), this.sources);
  }

  /** @param {Element} panel */
  async render(panel) {
    const source = this.sources[nameOf(panel)];
    if (!source) return;
    const { live, staticView } = partsOf(panel);
    live.hidden = false;
    await PANELS[nameOf(panel)].render({ model: source.model, el: live });
    nameApart(live, this.element.querySelector("h2")?.textContent ?? "");
    staticView.hidden = true;
  }

  /** Does something for a panel, whose static view stays if that goes wrong. @param {Element} panel @param {() => Promise<void>} work */
  async guarded(panel, work) {
    try {
      await work();
    } catch (error) {
      delete this.sources[nameOf(panel)];
      partsOf(panel).live.hidden = true;
      console.error(error);
    }
  }
}

/** Names the landmarks of a widget by its trace, where a page shows several. @param {HTMLElement} live @param {string} title */
function nameApart(live, title) {
  if (!title) return;
  for (const landmark of live.querySelectorAll("nav[aria-label], section[aria-label], [role=search], [role=region]")) {
    landmark.setAttribute("aria-label", `${landmark.getAttribute("aria-label")}: ${title}`);
  }
}

/** @param {Element} panel */
function nameOf(panel) {
  return /** @type {HTMLElement} */ (panel).dataset.widget ?? "";
}

/** @param {Element} panel */
function partsOf(panel) {
  const [live, staticView] = [".nbkit-live", ".nbkit-static-view"].map((part) => /** @type {HTMLElement} */ (panel.querySelector(part)));
  return { live, staticView };
}
