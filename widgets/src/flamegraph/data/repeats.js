// Repeated layers as one: a trace whose module paths have the name that equal layers share, such as 'layers.*'.

/**
 * Returns the trace with the paths of repeated modules replaced by the one they share; its rows and all else stay.
 * `repeated` says of such a path how many modules it stands for.
 * @param {import("./data.js").Trace} trace @returns {import("./data.js").Trace}
 */
export function foldedTrace(trace) {
  const { repeats, strings, columns } = trace;
  /** Numbers that each shared path stands for. @type {Map<string, Set<string>>} */
  const numbers = new Map();
  /** @type {Map<string, number>} */
  const codeOf = new Map();
  const codes = strings.module.map((path) => {
    const folded = foldedPath(path, repeats, numbers);
    if (!codeOf.has(folded)) codeOf.set(folded, codeOf.size);
    return /** @type {number} */ (codeOf.get(folded));
  });
  const module = Int32Array.from(columns.module, (code) => (code < 0 ? -1 : codes[code]));
  const repeated = new Map([...numbers].map(([path, { size }]) => [path, size]));
  return { ...trace, strings: { ...strings, module: [...codeOf.keys()] }, columns: { ...columns, module }, repeated };
}

/** @param {string} path @param {Record<string, string>} repeats @param {Map<string, Set<string>>} numbers */
function foldedPath(path, repeats, numbers) {
  let [whole, folded] = ["", ""];
  for (const part of path.split(".")) {
    whole = whole ? `${whole}.${part}` : part;
    const shared = Object.hasOwn(repeats, whole) ? repeats[whole] : null;
    folded = folded ? `${folded}.${shared ?? part}` : shared ?? part;
    if (shared === null) continue;
    if (!numbers.has(folded)) numbers.set(folded, new Set());
    numbers.get(folded)?.add(part);
  }
  return folded;
}

/** Returns how many modules a path stands for as ' × 12'; "" for one. @param {import("./data.js").Trace} trace @param {string} path */
export function timesText({ repeated }, path) {
  const count = repeated?.get(path);
  return count ? ` × ${count}` : "";
}
