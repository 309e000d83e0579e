// The views of a trace, each made when it is first asked for: frames, layout, links, colors, difference.

import { colored } from "./colors.js";
import { deviceTracks } from "../data/data.js";
import { difference, REMOVED } from "../data/difference.js";
import { timelineFrames } from "../data/frames.js";
import { groupedFrames } from "../data/groups.js";
import { sandwichFrames } from "../data/sandwich.js";
import { mergedLayout, sandwichLayout, timelineLayout } from "../layout/layout.js";
import { briefly } from "./describe.js";
import { heavyLinks, linksOf } from "../data/links.js";
import { mergedFrames } from "../data/merge.js";
import { foldedTrace } from "../data/repeats.js";
import { differenceCategories } from "../../shared/picture/palette.js";
import { unknownText } from "../data/verdicts.js";
import { counted, duration, share } from "../../shared/units.js";

/**
 * @typedef {{order: string, group: string, clock: string, color: string, op?: string | null, isFolded?: boolean}} Choice
 *   order: time or heavy; group: none, module, op, phase or sandwich (the callers and callees of `op`); clock: host or device;
 *   color: phase, family, device or difference; isFolded: repeated layers as one, which time order never has
 *
 * @typedef {object} View
 * @property {string} key
 * @property {boolean} isTimeline
 * @property {boolean} isGrouped by module, op or phase, by self time
 * @property {import("../data/frames.js").Frames} frames
 * @property {import("../layout/layout.js").Layout} layout
 * @property {() => import("../data/links.js").Links} links
 * @property {import("../data/difference.js").Difference | null} difference
 * @property {{time: number, name: string}} whole what shares are of
 * @property {(frame: number) => boolean} isOnDevice
 */

export class Views {
  /** @param {import("../data/data.js").Trace} trace @param {import("../data/data.js").Trace | null} base @param {import("../data/data.js").Noise | null} noise with a base */
  constructor(trace, base, noise = null) {
    this.trace = trace;
    this.base = base;
    this.noise = noise;
    /** @type {Map<string, any>} */
    this.known = new Map();
    this.isDevice = deviceTracks(trace);
  }

  /** Makes a thing once and keeps it under its name. @template T @param {string} name @param {() => T} make @returns {T} */
  once(name, make) {
    if (!this.known.has(name)) this.known.set(name, make());
    return this.known.get(name);
  }

  /** @param {Choice} choice @returns {View} */
  view({ order, group, clock, color, op, isFolded = false }) {
    const isShared = isFolded && this.hasRepeats;
    if (group === "sandwich") return this.sandwich(op ?? "", clock, isShared);
    if (group === "none" && order === "time") return this.once("timeline", () => this.timeline());
    return this.merged(group, order, clock, color === "difference", isShared);
  }

  /** Whether there are repeated layers to be shown as one; a comparison has those that are alike on both sides. */
  get hasRepeats() {
    const sides = this.base ? [this.trace, this.base] : [this.trace];
    return sides.every((trace) => trace !== null && Object.keys(trace.repeats).length > 0);
  }

  timeline() {
    const frames = timelineFrames(this.trace);
    const layout = timelineLayout(this.trace);
    const { track } = this.trace.columns;
    return {
      key: "timeline", isTimeline: true, isGrouped: false, frames, layout, difference: null, whole: wholeOf(frames, layout),
      links: () => this.once("timeline links", () => linksOf(frames)),
      isOnDevice: (/** @type {number} */ frame) => this.isDevice[track[frame]],
    };
  }

  /** @param {string} group @param {string} order @param {string} clock @param {boolean} isDifference @param {boolean} isFolded */
  merged(group, order, clock, isDifference, isFolded) {
    const key = [group, order, clock, isDifference ? "difference" : "", isFolded ? "folded" : ""].join(" ");
    return this.once(key, () => {
      const delta = isDifference && this.base ? this.difference(group, clock, isFolded) : null;
      const frames = delta ? delta.frames : this.mergedFrames(this.trace, group, clock, isFolded);
      const links = order === "heavy" ? heavyLinks(frames) : linksOf(frames);
      const time = links.roots.reduce((sum, root) => sum + frames.total[root], 0);
      const whole = { time, name: clock === "device" ? "all device time" : "all host time" };
      const layout = mergedLayout(frames, links);
      const isGrouped = group !== "none";
      return { key, isTimeline: false, isGrouped, frames, layout, difference: delta, whole, links: () => links, isOnDevice: () => clock === "device" };
    });
  }

  /** Only the last sandwich is kept: there are as many as names. @param {string} op as `texts` of merged calls have it @param {string} clock @param {boolean} isFolded @returns {View} */
  sandwich(op, clock, isFolded) {
    const key = `sandwich ${clock} ${isFolded} ${op}`;
    if (!this.known.has(key)) for (const old of this.known.keys()) if (old.includes("sandwich ")) this.known.delete(old);
    return this.once(key, () => {
      const merged = this.mergedFrames(this.trace, "none", clock, isFolded);
      const frames = sandwichFrames(merged, merged.texts.indexOf(op));
      const links = heavyLinks(frames);
      const whole = { time: frames.size ? frames.total[0] : 0, name: briefly(op) };
      return {
        key, isTimeline: false, isGrouped: false, frames, layout: sandwichLayout(frames, links), difference: null, whole,
        links: () => links, isOnDevice: () => clock === "device",
      };
    });
  }

  /**
   * Returns the name in a sandwich of a frame's op or module; of none (-1), that of the op with the most time of its own.
   * @param {View} view @param {number} frame @param {Choice} choice
   */
  opOf({ frames, isGrouped }, frame, { clock, isFolded = false }) {
    const { texts, kinds, self, name, of, size } = this.mergedFrames(this.trace, "none", clock, isFolded && this.hasRepeats);
    const row = frame < 0 ? -1 : frames.row[frame];
    // A grouped frame of an op has its name; one of a module or a phase is no call.
    const text = isGrouped && frame >= 0 ? frames.texts[frames.name[frame]] : "";
    if (isGrouped ? texts.includes(text) : row >= 0 && of[row] >= 0) return isGrouped ? text : texts[name[of[row]]];
    const sums = new Float64Array(texts.length);
    for (let at = 0; at < size; at += 1) if (kinds[name[at]] === "op") sums[name[at]] += self[at];
    return texts[sums.indexOf(Math.max(...sums))] ?? "";
  }

  /** @param {import("../data/data.js").Trace} trace @param {string} group @param {string} clock @param {boolean} [isFolded] */
  mergedFrames(trace, group, clock, isFolded = false) {
    const side = `${trace === this.base ? "base" : "now"}${isFolded ? " folded" : ""}`;
    const shown = isFolded ? this.once(side, () => foldedTrace(trace)) : trace;
    return this.once(`${side} ${group} ${clock}`, () => (group === "none" ? mergedFrames(shown, clock) : groupedFrames(shown, group, clock)));
  }

  /** Returns the difference of every frame to the base. @param {string} group @param {string} clock @param {boolean} [isFolded] @returns {import("../data/difference.js").Difference} */
  difference(group, clock, isFolded = false) {
    const base = /** @type {import("../data/data.js").Trace} */ (this.base);
    const noise = /** @type {import("../data/data.js").Noise} */ (this.noise);
    const view = `${group} ${clock}${isFolded ? " folded" : ""}`;
    return this.once(`difference ${view}`, () => {
      const [now, before] = [this.trace, base].map((trace) => this.mergedFrames(trace, group, clock, isFolded));
      return difference(now, before, noise, view);
    });
  }

  /**
   * Returns the difference and the frame in it with the same path; null without a base or in other colors.
   * @param {View} view @param {Choice} choice
   * @returns {(frame: number) => {difference: import("../data/difference.js").Difference, frame: number} | null}
   */
  changes(view, { color, group, clock }) {
    if (color !== "difference" || !this.base) return () => null;
    const delta = view.difference ?? this.difference(group, clock);
    return (frame) => {
      const at = view.isTimeline ? delta.frames.of[frame] : frame;
      return at < 0 ? null : { difference: delta, frame: at };
    };
  }

  /** Returns the note beside the colors of a difference; null for other colors. @param {View} view @param {Choice} choice */
  legendNote(view, { color, group, clock }) {
    if (color !== "difference" || !this.base) return null;
    const { codes, verdicts } = view.difference ?? this.difference(group, clock);
    const removed = view.isTimeline ? codes.reduce((sum, code) => sum + Number(code === REMOVED), 0) : 0;
    const hidden = removed ? ` · ${counted(removed, "removed frame")} not drawn in time order: choose left heavy` : "";
    return `${noiseNote(/** @type {import("../data/data.js").Noise} */ (this.noise), verdicts !== null)}${hidden}`;
  }

  /** Returns the categories and the code of each frame. @param {View} view @param {Choice} choice */
  colors(view, { color, group, clock }) {
    return this.once(`colors ${view.key} ${color}`, () => {
      if (color !== "difference" || !this.base) return colored(this.trace, view.frames, color);
      const delta = view.difference ?? this.difference(group, clock);
      const codes = view.isTimeline ? view.frames.row.reduce(coded(delta), new Uint8Array(view.frames.size)) : delta.codes;
      return { categories: differenceCategories(delta.verdicts !== null), codes };
    });
  }
}

/** Says what a choice shows, and in what order. @param {Choice} choice @param {boolean} [hasRepeats] whether there are layers to be shown as one */
export function titleOf({ group, order, op, isFolded }, hasRepeats = false) {
  if (group === "none" && order === "time") return "time order";
  const layers = isFolded && hasRepeats ? ", repeated layers as one" : "";
  if (group === "sandwich") return `callers and callees of ${briefly(op ?? "")}${layers}`;
  if (group === "none") return `left heavy, merged calls${layers}`;
  return order === "time" ? `by ${group}, in the order of first calls${layers}` : `left heavy, by ${group}${layers}`;
}

/** Says how much of a view is in view, and where. @param {View} view @param {import("../layout/camera.js").View} camera */
export function placeOf({ isTimeline, frames, layout, whole }, { from, to }) {
  const [extent, all] = [to - from, layout.max - layout.min];
  const isAll = extent >= all * (1 - 1e-9);
  if (isTimeline) return isAll ? `all of ${duration(all)}` : `${duration(extent)} from ${duration(from)} on, of ${duration(all)}`;
  const name = frames.callers ? duration(whole.time) : `${whole.name}, ${duration(whole.time)}`;
  return isAll ? name : `${share(extent / all)} of ${name}`;
}

/** Returns what the colors of a difference stand for. @param {import("../data/data.js").Noise} noise @param {boolean} isJudged */
function noiseNote({ repeats, factor, share: least }, isJudged) {
  if (isJudged) return `slower, faster: beyond the noise of ${repeats[1]} repeats, ${repeats[0]} before`;
  return `${unknownText(repeats)}; colored: at least ${factor} times as long or as short, by ${share(least)} of all time · record both with repeats (-r 10)`;
}

/** Gives each row the code of its merged frame. @param {import("../data/difference.js").Difference} delta */
function coded({ frames, codes }) {
  return (/** @type {Uint8Array} */ result, /** @type {number} */ row) => {
    if (frames.of[row] >= 0) result[row] = codes[frames.of[row]];
    return result;
  };
}

/** Returns what the shares of the timeline are of: its step, else all of the recording. @param {import("../data/frames.js").Frames} frames @param {import("../layout/layout.js").Layout} layout */
function wholeOf({ size, parent, name, names, total }, { min, max }) {
  const isStep = size > 0 && parent[0] < 0 && names[name[0]] === "step" && total[0] > 0;
  return isStep ? { time: total[0], name: "the step" } : { time: max - min, name: "the recording" };
}
