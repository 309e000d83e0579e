// The flame graph: draws what the model holds, and anew when that changes.

import { FlameView } from "./view.js";

/** @param {{model: any, el: HTMLElement}} context */
function render({ model, el }) {
  let view = new FlameView(model, el);
  const renew = () => {
    view.destroy();
    view = new FlameView(model, el);
  };
  const reselect = () => view.selectFromOutside();
  const listeners = { "change:flame": renew, "change:base": renew, "change:difference": renew, "change:selected_op_id": reselect };
  for (const [name, listener] of Object.entries(listeners)) model.on(name, listener);
  return () => {
    for (const [name, listener] of Object.entries(listeners)) model.off(name, listener);
    view.destroy();
  };
}

export default { render };
