// The parts of the graph's page, put together.

import { waysOf } from "../model/colors.js";
import { VALUES } from "../data/data.js";
import { KEYS } from "../layout/moves.js";
import { h } from "../../shared/dom.js";
import { header } from "../../shared/header.js";
import { keyList } from "../../shared/picture/key_list.js";
import { Tooltip } from "../../shared/picture/tooltip.js";
import { act, arrive, clicked, keyed } from "./actions.js";
import { Detail } from "./detail.js";
import { Legend } from "./legend.js";
import { Outline } from "./outline.js";
import { Stage } from "../canvas/stage.js";
import { Toolbar } from "./toolbar.js";

const POINTER = "Pointer: click selects, a click on + or − opens or closes, so does a double click. Drag moves; Ctrl and wheel zooms, and so does the wheel alone once the picture has the focus. Two fingers zoom.";

/** Makes all parts of the page, and their root. @param {any} view the graph that the parts call @param {import("../data/data.js").Data} data */
export function parts(view, data) {
  const named = (/** @type {string} */ text) => (data.side ? `${text}, ${data.side}` : text);
  const stage = new Stage({
    label: named("Graph, drawn; the outline beside it has the same parts and nodes"), onCamera: () => view.moved(), onSeen: () => view.openWhole(),
    onHover: (item, point) => view.point(item, point), onClick: (item, isDouble, point) => clicked(view, item, isDouble, point),
  });
  stage.element.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => keyed(view, event));
  stage.element.addEventListener("focus", () => arrive(view));
  stage.element.addEventListener("blur", () => view.tip.hide());
  const tools = new Toolbar({
    label: named("Search nodes and parts"),
    graphs: data.graphs.map((name) => [name, name || "(unnamed)"]), colors: waysOf(data), hasValues: data.nodes.texts.kind.values.some((kind) => VALUES.has(kind)),
    onChange: (change) => view.change(change), onSearch: (text) => view.search(text), onStep: (step) => view.step(step),
    onAct: (action) => act(view, action), onLeave: () => stage.element.focus(),
  });
  const outline = new Outline({
    onFocus: (item) => view.look(item), onEnter: (item) => view.goTo(item), onToggle: (item, isOpen) => view.toggle(item, isOpen), onKey: (event) => keyed(view, event),
  });
  const made = {
    stage, tools, outline, tip: new Tooltip(), legend: new Legend(), help: keyList(KEYS, POINTER, named("Keys")),
    detail: new Detail({ label: named("Selected item"), onGo: (node) => view.goToNode(node), onClose: () => (view.select(-1), stage.element.focus()) }),
    notice: h("p", { class: "nb-graph-notice", hidden: true }),
    status: h("div", { class: "nb-sr", role: "status", "aria-live": "polite" }),
  };
  return { ...made, root: data.nodes.count ? page(made, data) : nothing(data) };
}

/** @param {any} made @param {import("../data/data.js").Data} data */
function page({ tools, help: keys, notice, legend, stage, outline, detail, tip, status }, data) {
  const both = h("div", { class: "nb-graph-both" }, outline.element, stage.element);
  // Lumino would take the keys for the notebook, in its capture phase; this attribute keeps it out.
  return h("div", { class: "nbkit nbkit-picture nbkit-graph", "data-lm-suppress-shortcuts": "true" },
    header({ ...data, phases: [] }), tools.element, keys, notice, legend.element, both, detail.element, tip.element, status);
}

/** @param {import("../data/data.js").Data} data */
function nothing(data) {
  return h("div", { class: "nbkit nbkit-picture nbkit-graph" }, header({ ...data, phases: [] }), h("p", { class: "nb-graph-nothing" }, "No node was read, so there is no graph to show."));
}
