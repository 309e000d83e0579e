// What is said of a frame: its label for the live region, its facts for tooltip and detail pane.

import { change, counted, dataSize, duration, flops, share } from "../../shared/units.js";
import { ADDED } from "../data/difference.js";
import { childrenOf } from "../data/links.js";
import { isCaller } from "../data/sandwich.js";
import { relativeText, verdictText } from "../data/verdicts.js";

/** Longest name within a sentence. */
const BRIEF = 60;
/** Different shapes or source lines that are listed. */
const LISTED = 3;
const KINDS = ["same", "slower", "faster", "added", "removed"];

/** Characters that would turn or break the line they stand in. */
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

/** Returns a name as it is shown. @param {string} name */
export function visible(name) {
  return name.replace(UNSEEN, "\ufffd");
}

/** Returns a name as it is shown within a sentence, cut where it is long. @param {string} name */
export function briefly(name) {
  const text = visible(name);
  return text.length > BRIEF ? `${text.slice(0, BRIEF - 1)}…` : text;
}

/** Returns the name of a frame as it is shown. @param {import("../data/frames.js").Frames} frames @param {number} frame */
export function nameOf({ names, name }, frame) {
  return visible(names[name[frame]]);
}

/** @typedef {{difference: import("../data/difference.js").Difference, frame: number} | null} Change */

/** Siblings of a frame in the order of the view, itself among them. @param {import("./views.js").View} view @param {number} frame */
export function siblings(view, frame) {
  const beside = childrenOf(view.links(), view.frames.parent[frame]);
  return view.frames.callers ? beside.filter((other) => isCaller(view.frames, other) === isCaller(view.frames, frame)) : beside;
}

/** @param {import("../data/frames.js").Frames} frames @param {number} frame */
export function depthOf({ parent }, frame) {
  let depth = 1;
  for (let at = parent[frame]; at >= 0; at = parent[at]) depth += 1;
  return depth;
}

/** @param {import("./views.js").View} view @param {number} time */
export function shareText({ whole }, time) {
  return whole.time > 0 ? `${share(time / whole.time)} of ${whole.name}` : "";
}

/** Describes a frame: 'aten.mm.default, 1.20 ms, 14.0 % of the step, depth 5, 2 of 7'. @param {import("./views.js").View} view @param {number} frame @param {Change} [changed] */
export function announcement(view, frame, changed = null) {
  const { frames } = view;
  const { level, position, among } = positionOf(view, frame);
  const parts = [
    isCaller(frames, frame) ? `${nameOf(frames, frame)}, a caller` : nameOf(frames, frame), duration(frames.total[frame]), shareText(view, frames.total[frame]),
    frames.count[frame] > 1 ? counted(frames.count[frame], "call") : "",
    changed ? changeText(changed) : "",
    `depth ${level}`, `${position} of ${among}`,
  ];
  return parts.filter(Boolean).join(", ");
}

/** Words a change: 'slower: +1.20 ms (+20.0 %), beyond noise ±3.0 %', or that the noise is unknown. @param {NonNullable<Change>} changed */
export function changeText({ difference: { frames, before, codes, verdicts }, frame }) {
  const kind = KINDS[codes[frame]];
  if (kind === "added") return kind;
  if (kind === "removed") return `removed, was ${duration(before[frame])}`;
  if (verdicts) return verdictText(verdicts, frame, kind);
  const delta = frames.total[frame] - before[frame];
  const relative = relativeText(delta, before[frame]);
  return `${kind === "same" ? "" : `${kind}: `}${change(delta)}${relative && ` (${relative})`}, noise unknown`;
}

/** Returns where a frame stands among its siblings, from 1. @param {import("./views.js").View} view @param {number} frame */
export function positionOf(view, frame) {
  const among = siblings(view, frame);
  return { level: depthOf(view.frames, frame), position: among.indexOf(frame) + 1, among: among.length };
}

/** Returns a short mark of the change for a box: '▲ +20 %'. @param {Change} changed */
export function changeMark(changed) {
  if (!changed) return "";
  const { difference: { frames, before, codes, verdicts }, frame } = changed;
  const [delta, usual] = verdicts ? [verdicts.change[frame], verdicts.usual[frame]] : [frames.total[frame] - before[frame], before[frame]];
  const percent = usual > 0 ? ` ${delta < 0 ? "−" : "+"}${Math.round((100 * Math.abs(delta)) / usual)} %` : "";
  const what = `${verdicts?.isOwn[frame] ? " self" : ""}${percent}`;
  return ["", `▲${what}`, `▼${what}`, "added", "removed"][codes[frame]];
}

/** Returns a frame's own rows; none for one that only holds others. @param {import("../data/frames.js").Frames} frames @param {number} frame */
export function ownRows(frames, frame) {
  if (frames.isTimeline) return [frame];
  /** @type {number[]} */
  const rows = [];
  if (frames.row[frame] < 0) return rows;
  for (let row = frames.row[frame]; row < frames.of.length; row += 1) if (frames.of[row] === frame) rows.push(row);
  return rows;
}

/** Returns the op_id of a frame that is one row and no more; else null. @param {import("../data/frames.js").Frames} frames @param {number} frame */
export function singleRow(frames, frame) {
  return frames.count[frame] === 1 && frames.of[frames.row[frame]] === frame ? frames.row[frame] : null;
}

/**
 * Returns the facts of a frame as label and text; what is not known is left out.
 * @param {import("./views.js").View} view @param {import("../data/data.js").Trace} trace @param {number} frame @param {Change} [changed]
 * @returns {[string, string][]}
 */
export function facts(view, trace, frame, changed = null) {
  const { frames } = view;
  const { columns, strings } = trace;
  const rows = ownRows(frames, frame);
  const sum = (/** @type {string} */ name) => rows.reduce((total, row) => (columns[name][row] >= 0 ? (total || 0) + columns[name][row] : total), NaN);
  const texts = (/** @type {string} */ name) => distinct(rows.map((row) => columns[name][row]), strings[name]);
  const deviceTime = sum("device_self");
  /** @type {[string, string][]} */
  const list = [
    [isCaller(frames, frame) ? "calls from here took" : "total", `${duration(frames.total[frame])} · ${shareText(view, frames.total[frame])}`],
    ["self", isCaller(frames, frame) ? "" : `${duration(frames.self[frame])} · ${shareText(view, frames.self[frame])}`],
    ["calls", frames.count[frame] > 1 ? frames.count[frame].toLocaleString("en") : ""],
    [frames.isTimeline ? "all its calls" : "change", changed ? changeText(changed) : ""],
    ["before", changed && changed.difference.codes[changed.frame] !== ADDED ? duration(changed.difference.before[changed.frame]) : ""],
    ["device self", deviceTime > 0 ? duration(deviceTime) : ""],
    ["start", frames.isTimeline ? duration(columns.start[frame]) : ""],
    ["FLOPs", known(sum("flops"), flops)],
    ["bytes", known(sum("bytes"), dataSize)],
    ["module", texts("module")],
    ["phase", texts("phase")],
    ["device", texts("device")],
    ["shapes", texts("shapes")],
    ["source", texts("source")],
  ];
  return list.filter(([, text]) => text !== "");
}

/** @param {number} value @param {(value: number) => string} text */
function known(value, text) {
  return Number.isNaN(value) ? "" : text(value);
}

/** Lists the different texts, or says how many there are. @param {number[]} indices @param {string[]} strings */
function distinct(indices, strings) {
  const different = [...new Set(indices)].filter((index) => index >= 0);
  const listed = different.slice(0, LISTED).map((index) => strings[index] || "root module").join(" · ");
  return different.length > LISTED ? `${listed} · and ${different.length - LISTED} others` : listed;
}
