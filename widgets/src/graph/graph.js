// The graph: one graph of a trace at a time, or the two of a comparison side by side.

import { typed } from "../flamegraph/data/data.js";
import { SharedSelection } from "./data/selection.js";
import { inPlace } from "../live/in_place.js";
import { onWhole } from "../live/whole.js";
import { unpack } from "../shared/unpack.js";
import { GraphPair } from "./pair.js";
import { GraphView } from "./view.js";

/** Draws on a model whose data are all there. @param {{model: any, el: HTMLElement}} context */
async function render({ model, el }) {
  const make = async () => {
    const data = await unpack(typed(model.get("graph"), Uint8Array));
    const shared = new SharedSelection(model);
    return data.comparison ? new GraphPair(shared, el, data) : new GraphView(shared, el, data);
  };
  let view = await make();
  const renew = async () => {
    const before = view;
    const next = make();
    before.destroy();
    view = await next;
    if (view instanceof GraphView && before instanceof GraphView) view.takeOver(before);
    if (view instanceof GraphPair && before instanceof GraphPair) view.takeOver(before);
  };
  const reselect = () => view.selectFromOutside();
  const listeners = { "change:graph": renew, ...SharedSelection.listeners(reselect) };
  for (const [name, listener] of Object.entries(listeners)) model.on(name, listener);
  return () => {
    for (const [name, listener] of Object.entries(listeners)) model.off(name, listener);
    view.destroy();
  };
}

export default { render: /* @__PURE__ */ onWhole(["graph"], inPlace(render)) };
