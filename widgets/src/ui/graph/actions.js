// What each key of the picture, and each button of its tool line, does.

import { actionOf, isArrow, movedTo } from "../../lib/graph/moves.js";
import { ROOT } from "../../lib/graph/hierarchy.js";

/** @type {Record<string, [number, number]>} */
const PANS = { w: [0, -0.3], s: [0, 0.3], a: [-0.3, 0], d: [0.3, 0] };

/** @type {Record<string, (view: any, key: string) => any>} false: nothing was done */
const ACTIONS = {
  enter: (view) => enter(view),
  select: (view) => view.focus >= 0 && view.select(view.focus === view.selected ? -1 : view.focus),
  inner: (view) => goIn(view),
  outer: (view) => view.focus >= 0 && view.model.tree.parent[view.focus] > ROOT && view.focusOn(view.model.tree.parent[view.focus]),
  back: (view) => view.back(),
  nearer: (view) => view.stage.zoom(1.5),
  farther: (view) => view.stage.zoom(1 / 1.5),
  all: (view) => view.stage.fit(),
  fit: (view) => view.focus >= 0 && view.stage.fitTo(view.boxOf(view.focus)),
  pan: (view, key) => view.stage.pan(...PANS[key.toLowerCase()]),
  close: (view) => view.fold(),
  outline: (view) => view.change({ isOutline: !view.state.isOutline }),
  search: (view) => view.tools.search.focus(),
  match: (view, key) => view.step(key === "N" ? -1 : 1),
  help: (view) => view.change({ isHelp: !view.state.isHelp }),
};

/** @param {any} view */
function enter(view) {
  if (view.focus < 0) return false;
  return view.model.scene.holds(view.focus) ? view.toggle(view.focus, !view.model.scene.open.has(view.focus)) : view.select(view.focus);
}

/** @param {any} view */
function goIn(view) {
  if (view.focus < 0 || !view.model.scene.holds(view.focus)) return false;
  view.toggle(view.focus, true);
  return view.focusOn(movedTo("Home", view.model.scene.drawn(), view.model.tree.children[view.focus][0]));
}

/** @param {any} view the graph @param {string} action @param {string} [key] */
export function act(view, action, key = "") {
  return ACTIONS[action](view, key);
}

/** Does what a key stands for; other keys go on to the page. @param {any} view @param {KeyboardEvent} event */
export function keyed(view, event) {
  const hasModifier = event.ctrlKey || event.metaKey || event.altKey;
  const action = actionOf(event);
  if (!hasModifier && isArrow(event.key)) view.focusOn(movedTo(event.key, view.model.scene.drawn(), view.focus));
  else if (!action || act(view, action, event.key) === false) return;
  event.preventDefault();
  event.stopPropagation();
}
