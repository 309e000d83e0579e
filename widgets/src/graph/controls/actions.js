// What each key of the picture, and each button of its tool line, does.

import { ROOT } from "../data/hierarchy.js";
import { KEYS, movedTo } from "../layout/moves.js";
import { HEAD } from "../layout/scene.js";
import { actionOf, isArrow } from "../../shared/keys.js";

/** Width of the mark at the right of a box that opens and closes it. */
const MARK = 26;
/** @type {Record<string, [number, number]>} */
const PANS = { w: [0, -0.3], s: [0, 0.3], a: [-0.3, 0], d: [0.3, 0] };

/** @type {Record<string, (view: any, key: string) => any>} false: nothing was done */
const ACTIONS = {
  enter: (view) => enter(view),
  select: (view) => view.focus >= 0 && view.select(view.focus === view.selected ? -1 : view.focus),
  inner: (view) => goIn(view),
  outer: (view) => view.focus >= 0 && view.model.tree.parent[view.focus] > ROOT && view.focusOn(view.model.tree.parent[view.focus]),
  back: (view) => back(view),
  nearer: (view) => view.stage.zoom(1.5),
  farther: (view) => view.stage.zoom(1 / 1.5),
  all: (view) => view.stage.fit(),
  fit: (view) => view.focus >= 0 && view.stage.fitTo(view.boxOf(view.focus)),
  pan: (view, key) => view.stage.pan(...PANS[key.toLowerCase()]),
  close: (view) => fold(view),
  outline: (view) => view.change({ isOutline: !view.state.isOutline }),
  svg: (view) => view.save("svg"),
  png: (view) => view.save("png"),
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
  const action = actionOf(KEYS, event);
  if (!hasModifier && isArrow(event.key)) view.focusOn(movedTo(event.key, view.model.scene.drawn(), view.focus));
  else if (!action || act(view, action, event.key) === false) return;
  event.preventDefault();
  event.stopPropagation();
}

/** Gives keys that reach the picture a box to start from. @param {any} view the graph */
export function arrive(view) {
  if (!view.stage.element.matches(":focus-visible") || view.stage.isPressed) return;
  const first = view.model.scene.drawn().boxes.find((/** @type {import("../layout/scene.js").Box} */ { item }) => item >= 0)?.item ?? -1;
  view.focusOn(view.focus >= 0 ? view.focus : view.selected >= 0 ? view.model.scene.shownFor(view.selected) : first);
}

/** Handles a click, or a double click, in the picture. @param {any} view the graph @param {number} item @param {boolean} isDouble @param {{x: number, y: number}} point in the picture */
export function clicked(view, item, isDouble, point) {
  if (item < 0) return view.select(-1);
  const { scene } = view.model;
  const box = view.boxOf(item);
  const isMark = box.canOpen && point.x > box.x + box.width - MARK && point.y < box.y + HEAD;
  view.focus = item;
  if (isMark !== isDouble && scene.holds(item)) view.toggle(item, !scene.open.has(item));
  else if (!isDouble) view.select(item);
}

/** Goes one step back (tip, selection, search) and tells whether there was one. @param {any} view the graph */
function back(view) {
  if (!view.tip.element.hidden) view.tip.hide();
  else if (view.selected >= 0) view.select(-1);
  else if (view.text) view.tools.search.clear();
  else return false;
  return true;
}

/** Closes all parts. @param {any} view the graph */
function fold(view) {
  view.model.fold();
  if (view.focus >= 0) view.focus = view.model.scene.shownFor(view.focus);
  view.show();
  view.stage.openWhole();
}
