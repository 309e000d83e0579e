// The flame graph: draws what the model holds, and anew when that changes.

import { inPlace } from "../live/in_place.js";
import { onWhole } from "../live/whole.js";
import { FlameView } from "./view.js";

/** The traits with binary data. */
const HEAVY = ["flame", "base", "difference"];

/** Draws on a model whose data are all there. @param {{model: any, el: HTMLElement}} context */
function render({ model, el }) {
  let view = new FlameView(model, el);
  const renew = () => {
    view.destroy();
    view = new FlameView(model, el);
  };
  const listeners = {
    "change:flame": renew, "change:base": renew, "change:difference": renew,
    "change:selected_op_id": () => view.selectFromOutside(), "change:selected_range": () => view.range.adopt(),
  };
  for (const [name, listener] of Object.entries(listeners)) model.on(name, listener);
  return () => {
    for (const [name, listener] of Object.entries(listeners)) model.off(name, listener);
    view.destroy();
  };
}

export default { render: /* @__PURE__ */ onWhole(HEAVY, inPlace(render)) };
