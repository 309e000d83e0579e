// What the rows of each group have in common in a column of texts; nbkit/analysis/query/groups.py is the kernel's.

const LISTED = 3;

/** Returns a text per group: that of all its rows, or up to three of them, or how many differ; missing ones aside. @param {import("../columns/columns.js").TextColumn} column @param {import("./groups.js").Parts} parts @returns {import("../columns/columns.js").TextColumn} */
export function commonTexts({ values, codes }, { rows, starts }) {
  const result = new Int32Array(starts.length - 1).fill(-1);
  const seenIn = new Int32Array(values.length).fill(-1);
  /** @type {Map<string, number>} */
  const made = new Map();
  for (let group = 0; group < result.length; group += 1) {
    const different = textsIn(group, { codes, rows, starts, seenIn });
    if (different.length === 1) result[group] = different[0];
    if (different.length < 2) continue;
    const listed = different.sort((left, right) => left - right).map((code) => values[code]).join(", ");
    const text = different.length > LISTED ? `${different.length.toLocaleString("en")} different` : listed;
    if (!made.has(text)) made.set(text, made.size);
    result[group] = values.length + (made.get(text) ?? 0);
  }
  return { values: [...values, ...made.keys()], codes: result };
}

/** Returns the codes that the rows of a group have, each once. @param {number} group @param {{codes: Int32Array, rows: Int32Array, starts: Int32Array, seenIn: Int32Array}} known */
function textsIn(group, { codes, rows, starts, seenIn }) {
  /** @type {number[]} */
  const different = [];
  for (let at = starts[group]; at < starts[group + 1]; at += 1) {
    const code = codes[rows[at]];
    if (code < 0 || seenIn[code] === group) continue;
    seenIn[code] = group;
    different.push(code);
  }
  return different;
}
