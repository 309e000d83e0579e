// What the noise of the repeats says about each frame, and the words for it.

import { change as changeOf, share } from "../../shared/units.js";

/** From so many times the time itself on, the noise is not told more exactly. */
const MOST = 10;

/**
 * @typedef {object} Verdicts
 * @property {Float64Array} usual time before, on the clock of now; null (NaN) where a frame is too short to be judged
 * @property {Float64Array} change
 * @property {Float64Array} noise the largest change that noise explains
 * @property {Uint8Array} isOwn whether the times are the frame's own, without what is inside
 */

/** Returns the verdicts by frame. @param {import("./frames.js").Frames} frames of now @param {import("./data.js").Judged} judged @returns {Verdicts} */
export function verdictsOf({ size, of, parent }, judged) {
  const empty = () => new Float64Array(size).fill(NaN);
  const verdicts = { usual: empty(), change: empty(), noise: empty(), isOwn: new Uint8Array(size) };
  judged.row.forEach((row, index) => {
    let frame = of[row];
    for (let up = judged.up[index]; up > 0 && frame >= 0; up -= 1) frame = parent[frame];
    if (frame < 0) return;
    verdicts.usual[frame] = judged.usual[index];
    verdicts.change[frame] = judged.change[index];
    verdicts.noise[frame] = judged.noise[index];
    verdicts.isOwn[frame] = judged.own[index];
  });
  return verdicts;
}

/**
 * Words a verdict: 'slower: +1.20 ms (+18.0 %), beyond noise ±3.0 %' or 'within noise (+0.5 %, noise ±3.0 %)'.
 * @param {Verdicts} verdicts @param {number} frame @param {string} kind slower, faster or same
 */
export function verdictText({ usual, change, noise, isOwn }, frame, kind) {
  if (Number.isNaN(noise[frame])) return "too short to be judged";
  const [relative, around] = [relativeText(change[frame], usual[frame]), noiseText(noise[frame], usual[frame])];
  if (kind === "same") return `within noise (${relative || changeOf(change[frame])}, noise ${around})`;
  return `${isOwn[frame] ? "self time " : ""}${kind}: ${changeOf(change[frame])}${relative && ` (${relative})`}, beyond noise ${around}`;
}

/** Formats a change as '+18.0 %'; "" where there was no time before. @param {number} delta @param {number} before */
export function relativeText(delta, before) {
  return before > 0 ? `${delta < 0 ? "−" : "+"}${share(Math.abs(delta) / before)}` : "";
}

/** @param {number} noise @param {number} usual */
function noiseText(noise, usual) {
  if (!(usual > 0)) return `±${changeOf(noise).slice(1)}`;
  return noise >= MOST * usual ? `over ±${100 * MOST} %` : `±${share(noise / usual)}`;
}

/** Returns why the noise is not known. @param {[number, number]} repeats */
export function unknownText(repeats) {
  return Math.max(...repeats) < 2 ? "one run each: noise unknown" : "noise unknown: repeats of one side only";
}
