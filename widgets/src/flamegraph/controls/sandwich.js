// Ways into and out of the callers and callees of an op.

/** Shows the callers and callees of a frame's op; of -1, of the op with the most time of its own. @param {any} view the flame graph @param {number} frame */
export function openSandwich(view, frame) {
  view.change({ group: "sandwich", op: view.views.opOf(view.view, frame, view.state) });
  if (view.view.frames.size) view.focusOn(0, false);
}

/** Goes back to what was shown before, with its colors. @param {any} view */
export function closeSandwich(view) {
  const { group, order, color } = view.before ?? { ...view.state, group: "none", order: "time" };
  view.change({ group, order, color });
}

/**
 * Completes a change that leads to a sandwich: which op it is of, and that it is of this run alone, without a difference.
 * @param {any} view @param {any} change
 */
export function withOp(view, change) {
  if (change.group !== "sandwich") return change;
  const { state } = view;
  if (state.group !== "sandwich") view.before = { ...state };
  const op = change.op ?? view.views.opOf(view.view, view.selected >= 0 ? view.selected : view.focus, state);
  return { ...change, op, color: state.color === "difference" ? "phase" : state.color };
}
