// The flame graph's columns out of those of the op table, as nbkit/views/flamegraph/data.py makes both of one frame.

import { opColumns } from "./columns/op_columns.js";
import { shown } from "../shared/names.js";

const NAME_LIMIT = 400;
/** Columns of the flame graph and the texts or numbers of an op that each is. */
const TEXTS = { op: "op", phase: "phase", level: "level", device: "device", source: "source", shapes: "input_shapes" };
const TIMES = { start: "start_us", total: "total_time_us", self: "self_time_us" };
const NUMBERS = { device_self: "self_device_time_us", flops: "flops", bytes: "size_bytes" };

/** Strings and columns of the state, with the tracks given. @param {any} ops the unpacked columns of its ops @param {Int32Array} track */
export function framesOf(ops, track) {
  const { texts, numbers } = opColumns(ops);
  const named = Object.fromEntries(Object.entries(TEXTS).map(([name, column]) => [name, namedOnce(texts[column].values, texts[column].codes)]));
  named.module = modulePaths(texts.model, texts.module);
  const entries = Object.entries(named);
  /** @type {Record<string, Int32Array | Float64Array>} */
  const columns = { parent: parents(numbers.parent_id, track), track };
  // Layout has no use for an unknown time: such a frame has no width.
  for (const [name, column] of Object.entries(TIMES)) columns[name] = numbers[column].map((value) => value || 0);
  for (const [name, column] of Object.entries(NUMBERS)) columns[name] = numbers[column];
  for (const [name, { codes }] of entries) columns[name] = codes;
  return { strings: Object.fromEntries(entries.map(([name, { strings }]) => [name, strings])), columns };
}

/** Returns the rows of the parents; -1 for none, and where it is on another track. @param {Float64Array} parent @param {Int32Array} track */
function parents(parent, track) {
  return Int32Array.from(parent, (above, row) => (above >= 0 && above < parent.length && track[above] === track[row] ? above : -1));
}

/** Returns the paths that start with the model's name, in the order in which they first appear. @param {import("./columns/columns.js").TextColumn} model @param {import("./columns/columns.js").TextColumn} module */
function modulePaths(model, module) {
  const span = Math.max(module.values.length, 1);
  /** @type {Map<number, number>} */
  const codeOf = new Map();
  const codes = module.codes.map((path, row) => {
    if (path < 0) return -1;
    const pair = (model.codes[row] + 1) * span + path;
    if (!codeOf.has(pair)) codeOf.set(pair, codeOf.size);
    return /** @type {number} */ (codeOf.get(pair));
  });
  const names = [...codeOf.keys()].map((pair) => {
    const [root, path] = [Math.floor(pair / span), pair % span];
    return [root ? model.values[root - 1] : "", module.values[path]].filter(Boolean).join(".");
  });
  return namedOnce(names, codes);
}

/** Returns the codes and the shown names of them, each name once: names may be the same once they are cut. @param {string[]} names @param {Int32Array} codes */
function namedOnce(names, codes) {
  /** @type {Map<string, number>} */
  const codeOf = new Map();
  const newCodes = names.map((name) => {
    const text = shown(name, NAME_LIMIT);
    if (!codeOf.has(text)) codeOf.set(text, codeOf.size);
    return /** @type {number} */ (codeOf.get(text));
  });
  return { codes: codes.map((code) => (code < 0 ? -1 : newCodes[code])), strings: [...codeOf.keys()] };
}
