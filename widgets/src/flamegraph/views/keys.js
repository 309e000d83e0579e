// What the keys do in the flame graph, and where the arrows lead.

import { isArrow } from "../../shared/keys.js";
import { childrenOf } from "../data/links.js";
import { isCaller } from "../data/sandwich.js";
import { siblings } from "./describe.js";

/** @type {import("../../shared/keys.js").Keys} */
export const KEYS = [
  [["ArrowDown", "ArrowUp"], "", "to the first child, to the parent (the other way in flame orientation)"],
  [["ArrowLeft", "ArrowRight"], "", "to the frame before or after it of the same parent"],
  [["Home", "End"], "", "to the first or last frame of the same parent"],
  [["h"], "heaviest", "to the child that took the most time"],
  [["Shift"], "", "with an arrow, Home or End: select the range of time up to the frame that it leads to"],
  [["z"], "range", "zoom to the selected range"],
  [["Enter"], "zoom", "zoom to the frame and select it"],
  [[" "], "select", "toggle selection"],
  [["Escape"], "back", "one step back: range, details, zoom, callers, search"],
  [["w", "+", "="], "nearer", "zoom in"],
  [["s", "-"], "farther", "zoom out"],
  [["a"], "left", "pan left"],
  [["d"], "right", "pan right"],
  [["0"], "all", "show all"],
  [["1"], "time", "time order"],
  [["2"], "heavy", "left heavy"],
  [["c"], "sandwich", "callers and callees of the frame's op"],
  [["m"], "fold", "repeated layers as one, or each (not in time order)"],
  [["i"], "flip", "icicle or flame"],
  [["t"], "table", "table on or off"],
  [["/"], "search", "to the search"],
  [["n", "N"], "match", "next, previous match"],
  [["?"], "help", "this list"],
];

/**
 * Returns the frame that a key leads to; -1 if it does not move.
 * @param {string} key @param {import("./views.js").View} view @param {number} frame -1 for none yet @param {boolean} isFlame
 */
export function movedTo(key, view, frame, isFlame) {
  if (!isArrow(key)) return -1;
  const { roots } = view.links();
  if (frame < 0) return roots.length ? roots[0] : -1;
  if (key === "ArrowDown" || key === "ArrowUp") {
    const isDown = (key === "ArrowDown") !== isFlame;
    // Above an op in a sandwich are its callers.
    const isOfCallers = isCaller(view.frames, frame) || (!isDown && view.frames.callers !== undefined && frame === 0);
    if (isDown === isOfCallers) return view.frames.parent[frame];
    return childrenOf(view.links(), frame).find((child) => isCaller(view.frames, child) === isOfCallers) ?? -1;
  }
  const among = siblings(view, frame);
  const last = among.length - 1;
  const index = among.indexOf(frame);
  const to = { ArrowLeft: Math.max(index - 1, 0), ArrowRight: Math.min(index + 1, last), Home: 0, End: last }[key] ?? index;
  return among[to];
}

/** Returns the child with the most time; -1 for a leaf. @param {import("./views.js").View} view @param {number} frame */
export function heaviestChild({ frames, links }, frame) {
  const children = childrenOf(links(), frame).filter((child) => isCaller(frames, child) === isCaller(frames, frame));
  return children.reduce((best, child) => (best < 0 || frames.total[child] > frames.total[best] ? child : best), -1);
}
