// Which frames the frame table adds up, and where a line of it leads in the view.

import { matcher, matchFrames } from "../views/search.js";
import { lines } from "./lines.js";

/**
 * Returns the frames behind the table: those of the view; with a base, those of the merged difference.
 * @param {import("../views/views.js").Views} views @param {import("../views/views.js").View} view @param {import("../views/views.js").Choice} choice
 */
export function tableViewOf(views, view, choice) {
  return views.base ? views.view({ ...choice, order: "heavy", color: "difference" }) : view;
}

/** Returns the frame of one view that holds the first row of a frame of another; -1 if there is none. @param {import("../views/views.js").View} from @param {number} frame @param {import("../views/views.js").View} to */
export function across(from, frame, to) {
  if (frame < 0 || from.frames === to.frames) return frame;
  const row = from.frames.row[frame];
  return row < 0 ? -1 : to.frames.of[row];
}

/**
 * Returns what the table shows inside a frame of the view (-1 for all) and of a search.
 * @param {import("../views/views.js").View} tableView @param {number} top frame of the table view @param {string} text
 */
export function tableOf(tableView, top, text) {
  const { frames, difference, whole } = tableView;
  const { test } = matcher(text);
  const isMatch = test && matchFrames(frames, test, () => false).isMatch;
  const inside = top < 0 ? "all frames" : `inside ${frames.texts[frames.name[top]]}`;
  return {
    lines: lines(frames, tableView.links(), { top, isMatch, difference }), names: frames.texts, whole: whole.time,
    about: text ? `${inside}, matching ${text}` : inside, difference,
  };
}
