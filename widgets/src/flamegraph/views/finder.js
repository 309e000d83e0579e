// The search of a view: what was looked for, what it found, and its share of the time.

import { counted, share } from "../../shared/units.js";
import { matcher, matchFrames, matchRows, nextMatch } from "./search.js";

const OF_CALLS = "Share of the matching calls with all that they called, as in their total time.";
const OF_GROUPS = "Share of the self time of the matching ops, or of all ops inside a matching module or phase. What an op "
  + "called is a frame of its own here, so that the share of an op is less than in calls, where it holds that too.";

export class Finder {
  constructor() {
    this.text = "";
    this.problem = "";
    /** @type {import("./search.js").Matches | null} */
    this.matches = null;
    /** @type {import("../layout/layout.js").Rows | null} rows with nothing but matches; null without a search */
    this.rows = null;
  }

  /** Looks for a text in a view. @param {string} text @param {import("./views.js").View} view */
  run(text, view) {
    const { test, problem } = matcher(text);
    this.text = text;
    this.problem = problem;
    this.matches = test && matchFrames(view.frames, test, view.isOnDevice);
    this.rows = this.matches && matchRows(view.layout, this.matches);
  }

  get count() {
    return this.matches?.count ?? 0;
  }

  /** Sums up a search: '6 matches · 65.2 % of the time'; "" without a search. @param {import("./views.js").View} view */
  summary(view) {
    if (!this.matches) return "";
    const { count, hostTotal, deviceTotal } = this.matches;
    if (!count) return "no match";
    const { host, device } = totals(view);
    const parts = [counted(count, "match")];
    // Callers and callees have the same time.
    if (view.frames.callers) return parts[0];
    const time = view.isGrouped ? "self time" : "time";
    if (hostTotal) parts.push(`${share(hostTotal / host)} of ${device ? `host ${time}` : view.isGrouped ? time : "the time"}`);
    if (deviceTotal) parts.push(`${share(deviceTotal / device)} of device ${time}`);
    return parts.join(" · ");
  }

  /** Returns what the share in the summary is of, and how nested matches count; "" where there is none. @param {import("./views.js").View} view */
  meaning(view) {
    return this.count && !view.frames.callers ? `${view.isGrouped ? OF_GROUPS : OF_CALLS} A match inside another one counts once.` : "";
  }

  /** Returns the match after or before a frame; -1 if there is none. @param {import("./views.js").View} view @param {number} frame @param {number} step */
  next(view, frame, step) {
    return this.rows ? nextMatch(this.rows, view.layout, frame, step) : -1;
  }
}

/** @type {WeakMap<import("./views.js").View, {host: number, device: number}>} */
const known = new WeakMap();

/** Returns the time of all that has nothing above it, on the host and on devices. @param {import("./views.js").View} view */
export function totals(view) {
  const { size, parent, total } = view.frames;
  const sums = known.get(view) ?? { host: 0, device: 0 };
  if (known.has(view)) return sums;
  for (let frame = 0; frame < size; frame += 1) {
    if (parent[frame] < 0) sums[view.isOnDevice(frame) ? "device" : "host"] += total[frame];
  }
  known.set(view, sums);
  return sums;
}
