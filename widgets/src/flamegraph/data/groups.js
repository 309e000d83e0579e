// Groupings: the time of all rows by module path, by op or by phase.

import { FrameTree, weights } from "./merge.js";
import { PairMap } from "./pair_map.js";
import { timesText } from "./repeats.js";

/** What stands on each level of a grouping. @type {Record<string, string[]>} */
const LEVELS = { module: ["module", "phase", "op"], op: ["op", "phase", "module path"], phase: ["phase", "module", "op"] };

/** Makes the frames of a grouping. @param {import("./data.js").Trace} trace @param {string} by module, op or phase @param {string} clock */
export function groupedFrames(trace, by, clock) {
  const { weight, isIn } = weights(trace, clock);
  const { module, phase, op } = trace.columns;
  const names = new Names();
  const tree = new FrameTree(names, trace.count);
  const leaves = new PairMap();
  const phases = trace.strings.phase.length;
  for (let row = 0; row < trace.count; row += 1) {
    if (!isIn(row)) continue;
    const cell = (module[row] + 1) * phases + phase[row];
    let leaf = leaves.get(cell, op[row]);
    if (leaf < 0) {
      leaf = leafOf(tree, names, LEVELS[by], textsOf(trace, row), (path) => timesText(trace, path));
      leaves.set(cell, op[row], leaf);
    }
    tree.of[row] = leaf;
  }
  return tree.frames(weight, { countsBelow: true });
}

/** @param {import("./data.js").Trace} trace @param {number} row */
function textsOf({ strings, columns }, row) {
  const module = columns.module[row];
  return { op: strings.op[columns.op[row]], phase: strings.phase[columns.phase[row]], module: module < 0 ? null : strings.module[module] };
}

/** @param {FrameTree} tree @param {Names} names @param {string[]} levels @param {{op: string, phase: string, module: string | null}} texts @param {(path: string) => string} times */
function leafOf(tree, names, levels, { op, phase, module }, times) {
  let frame = -1;
  for (const level of levels) {
    if (level === "op") frame = tree.child(frame, names.index("op", op, op));
    else if (level === "phase") frame = tree.child(frame, names.index("phase", phase, phase));
    else if (level === "module path" || !module) frame = tree.child(frame, names.index("module", wholeName(module), wholeName(module)));
    else frame = steps(tree, names, frame, module, times);
  }
  return frame;
}

/** @param {string | null} module */
function wholeName(module) {
  return module === null ? "outside modules" : module || "root module";
}

/** Makes one frame for each part of a path. @param {FrameTree} tree @param {Names} names @param {number} top @param {string} module @param {(path: string) => string} times */
function steps(tree, names, top, module, times) {
  const parts = module.split(".");
  let frame = top;
  parts.forEach((part, depth) => {
    const path = parts.slice(0, depth + 1).join(".");
    frame = tree.child(frame, names.index("module", path, `${part}${times(path)}`));
  });
  return frame;
}

/** Names told apart by their kind and their whole text. */
class Names {
  constructor() {
    /** @type {string[]} */
    this.names = [];
    /** @type {string[]} */
    this.texts = [];
    /** @type {string[]} */
    this.kinds = [];
    this.known = new Map();
  }

  /** @param {string} kind @param {string} text @param {string} name */
  index(kind, text, name) {
    const key = `${kind} ${text}`;
    const known = this.known.get(key);
    if (known !== undefined) return known;
    this.texts.push(text);
    this.kinds.push(kind);
    this.known.set(key, this.names.length);
    return this.names.push(name) - 1;
  }
}
