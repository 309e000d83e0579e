// What each key of the flame graph does, and what choosing a line of its table does.

import { heaviestChild, KEYS, movedTo } from "../views/keys.js";
import { openSandwich } from "./sandwich.js";
import { across, tableViewOf } from "../frame_table/content.js";
import { actionOf } from "../../shared/keys.js";

/** @type {Record<string, (view: any, key: string) => any>} false: nothing was done */
const ACTIONS = {
  heaviest: (view) => goHeaviest(view),
  zoom: (view) => view.enter(view.focus),
  select: (view) => view.focus >= 0 && view.select(view.focus === view.selected ? -1 : view.focus),
  back: (view) => view.back(),
  nearer: (view) => view.stage.zoom(2),
  farther: (view) => view.stage.zoom(0.5),
  left: (view) => view.stage.pan(-0.3),
  right: (view) => view.stage.pan(0.3),
  all: (view) => view.zoomTo(-1),
  time: (view) => view.change({ order: "time" }),
  heavy: (view) => view.change({ order: "heavy" }),
  fold: (view) => view.views.hasRepeats && !view.view.isTimeline && toggleFold(view),
  sandwich: (view) => openSandwich(view, view.focus),
  flip: (view) => view.state.group !== "sandwich" && view.change({ isFlame: !view.state.isFlame }),
  table: (view) => view.change({ isTable: !view.state.isTable }),
  search: (view) => view.tools.search.focus(),
  match: (view, key) => view.step(key === "N" ? -1 : 1),
  range: (view) => view.range.zoom(),
  help: (view) => view.change({ isHelp: !view.state.isHelp }),
};

/** @param {any} view */
function goHeaviest(view) {
  const to = view.focus < 0 ? movedTo("Home", view.view, -1, false) : heaviestChild(view.view, view.focus);
  return to >= 0 && view.focusOn(to);
}

/** Shows repeated layers as one, or each; a sandwich stays with the same op. @param {any} view */
function toggleFold(view) {
  const change = { isFolded: !view.state.isFolded };
  const op = view.state.group === "sandwich" ? view.views.opOf(view.view, 0, { ...view.state, ...change }) : view.state.op;
  return view.change({ ...change, op });
}

/** @param {any} view the flame graph @param {string} action @param {string} [key] */
export function act(view, action, key = "") {
  return ACTIONS[action](view, key);
}

/** Does what a key stands for; other keys go on to the page. @param {any} view @param {KeyboardEvent} event */
export function keyed(view, event) {
  const hasModifier = event.ctrlKey || event.metaKey || event.altKey;
  const to = hasModifier ? -1 : movedTo(event.key, view.view, view.focus, view.isFlame);
  const action = actionOf(KEYS, event);
  // An arrow that leads nowhere still belongs to the tree and does not scroll it.
  const isArrow = !hasModifier && event.key.startsWith("Arrow");
  if (to >= 0 && event.shiftKey && view.view.isTimeline) view.range.extend(to);
  else if (to >= 0) view.focusOn(to);
  else if (!isArrow && (!action || act(view, action, event.key) === false)) return;
  event.preventDefault();
  event.stopPropagation();
}

/** Selects the largest frame of a line of the table. @param {any} view @param {number} frame of the table's frames */
export function choose(view, frame) {
  const tableView = tableViewOf(view.views, view.view, view.state);
  // What was removed is only in the merged difference.
  if (across(tableView, frame, view.view) < 0) view.change({ order: "heavy", color: "difference" });
  const to = across(tableView, frame, view.view);
  view.focusOn(to, false);
  view.select(to);
}
