// Small made-up traces for the tests of the flame graph.

/**
 * @typedef {{op: string, total: number, parent?: number, start?: number, track?: number, level?: string, phase?: string,
 *   module?: string, device?: string, device_self?: number, flops?: number, bytes?: number, shapes?: string}} Row
 */

const TEXTS = ["op", "module", "phase", "level", "device", "source", "shapes"];

/** A decoded trace of rows; a row starts where its elder sibling ends, unless it says otherwise. @param {Row[]} rows @param {{name: string, kind: string}[]} [tracks] */
export function traceOf(rows, tracks = [{ name: "thread 0", kind: "host" }]) {
  /** @type {Record<string, string[]>} */
  const strings = Object.fromEntries(TEXTS.map((name) => [name, []]));
  /** @type {Record<string, any>} */
  const columns = { parent: [], track: [], start: [], total: [], self: [], device_self: [], flops: [], bytes: [] };
  for (const name of TEXTS) columns[name] = [];
  const ends = new Map();
  for (const row of rows) {
    const { parent = -1, track = 0, total } = row;
    const start = row.start ?? ends.get(parent) ?? (parent < 0 ? 0 : columns.start[parent]);
    ends.set(parent, start + total);
    const texts = { phase: "forward", level: "aten", ...row };
    for (const name of TEXTS) columns[name].push(indexOf(strings[name], /** @type {any} */ (texts)[name]));
    const numbers = { parent, track, start, total, self: total, device_self: row.device_self ?? NaN, flops: row.flops ?? NaN, bytes: row.bytes ?? NaN };
    for (const [name, value] of Object.entries(numbers)) columns[name].push(value);
    if (parent >= 0) columns.self[parent] -= total;
  }
  const isFloat = (/** @type {string} */ name) => ["start", "total", "self", "device_self", "flops", "bytes"].includes(name);
  const typed = Object.entries(columns).map(([name, values]) => [name, isFloat(name) ? Float64Array.from(values) : Int32Array.from(values)]);
  return { title: "", count: rows.length, complete: true, notes: [], strings, tracks, columns: Object.fromEntries(typed), memory: [], repeats: {} };
}

/** @param {string[]} texts @param {string | undefined} text */
function indexOf(texts, text) {
  if (text === undefined) return -1;
  if (!texts.includes(text)) texts.push(text);
  return texts.indexOf(text);
}

/** A step: two blocks with an mm each, the second one slower, and a backward mm. */
export function step() {
  return traceOf([
    { op: "step", total: 100, level: "range" },
    { op: "Block", total: 20, parent: 0, level: "module", module: "blocks.0" },
    { op: "aten.mm", total: 15, parent: 1, module: "blocks.0", flops: 100 },
    { op: "Block", total: 40, parent: 0, level: "module", module: "blocks.1" },
    { op: "aten.mm", total: 30, parent: 3, module: "blocks.1", flops: 200 },
    { op: "aten.relu", total: 5, parent: 3, module: "blocks.1" },
    { op: "aten.mm", total: 25, parent: 0, module: "blocks.0", phase: "backward" },
  ]);
}

/** Names of frames from the top down, as 'a>b'. @param {any} frames @param {number} frame */
export function pathText(frames, frame) {
  const names = [];
  for (let at = frame; at >= 0; at = frames.parent[at]) names.unshift(frames.names[frames.name[at]]);
  return names.join(">");
}

/** Total of each path. @param {any} frames */
export function totals(frames) {
  return Object.fromEntries(Array.from({ length: frames.size }, (_, frame) => [pathText(frames, frame), frames.total[frame]]));
}

/** The noise of single recordings: unknown. @param {number} [factor] @param {number} [share] @returns {import("../src/flamegraph/data/data.js").Noise} */
export function single(factor = 1.2, share = 0.01) {
  return { repeats: [1, 1], notes: [], factor, share, views: {} };
}

/**
 * The noise of ten repeats of both, with the judged frames of the merged calls by host time.
 * @param {{row: number, up?: number, own?: number, usual: number, change: number, noise: number}[]} frames
 * @returns {import("../src/flamegraph/data/data.js").Noise}
 */
export function repeated(frames) {
  const integers = Object.fromEntries(["row", "up", "own"].map((name) => [name, Int32Array.from(frames, (frame) => /** @type {any} */ (frame)[name] ?? 0)]));
  const floats = Object.fromEntries(["usual", "change", "noise"].map((name) => [name, Float64Array.from(frames, (frame) => /** @type {any} */ (frame)[name])]));
  const judged = /** @type {any} */ ({ ...integers, ...floats });
  return { ...single(), repeats: [10, 12], views: { "none host": judged, "module host": judged } };
}
