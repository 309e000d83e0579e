// Several widgets of one trace as one, below HTML: each draws on a model of its own, a thin proxy of the one that there is.

import diffTable from "../diff_table/diff_table.js";
import flamegraph from "../flamegraph/flamegraph.js";
import graph from "../graph/graph.js";
import opTable from "../op_table/op_table.js";
import { h } from "../shared/dom.js";
import { inPlace } from "../live/in_place.js";
import { partModel } from "./part_model.js";
import { linkPlaces } from "./places.js";

/** The widgets by the names of their bundles. @type {Record<string, {render: Function}>} */
const WIDGETS = { diff_table: diffTable, flamegraph, graph, op_table: opTable };

/** @param {{model: any, el: HTMLElement}} context */
async function render({ model, el }) {
  const above = h("div", { class: "nbkit-above" });
  const parts = model.get("parts").map((/** @type {string} */ name) => ({ name, element: h("div", { class: "nbkit-part" }) }));
  const root = h("div", { class: "nbkit-composite" }, above, ...parts.map((/** @type {any} */ { element }) => element));
  const renew = () => {
    // Python wrote it and escaped what is not its own.
    above.innerHTML = model.get("html");
    above.hidden = !model.get("html");
  };
  renew();
  model.on("change:html", renew);
  // A part measures the width that it has.
  el.append(root);
  const unlink = linkPlaces(model, above, parts);
  const ends = await Promise.all(parts.map((/** @type {any} */ { name, element }) => WIDGETS[name].render({ model: partModel(model, name), el: element })));
  return () => {
    model.off("change:html", renew);
    unlink();
    for (const end of ends) end?.();
    root.remove();
  };
}

export default { render: /* @__PURE__ */ inPlace(render) };
