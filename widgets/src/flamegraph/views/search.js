// Search: which names match, which frames, and what share of the time they hold.

/**
 * Makes a test of texts, and says what was wrong with the pattern: a broken regular expression is searched as plain text.
 * @param {string} text
 * @returns {{test: ((text: string) => boolean) | null, problem: string}}
 */
export function matcher(text) {
  if (!text.trim()) return { test: null, problem: "" };
  try {
    const pattern = new RegExp(text, "i");
    return { test: (value) => pattern.test(value), problem: "" };
  } catch (error) {
    const wanted = text.toLowerCase();
    const reason = /** @type {Error} */ (error).message.split(": ").pop();
    return { test: (value) => value.toLowerCase().includes(wanted), problem: `Not a regular expression (${reason}); searching for it as plain text.` };
  }
}

/**
 * Frames that match.
 * @typedef {object} Matches
 * @property {Uint8Array} isMatch of each frame
 * @property {Int32Array} list the frames that match, ascending
 * @property {number} count
 * @property {number} hostTotal time of the matches on the host, one below another match not counted again
 * @property {number} deviceTotal the same for frames of a device's tracks
 */

/**
 * @param {import("../data/frames.js").Frames} frames
 * @param {(text: string) => boolean} test
 * @param {(frame: number) => boolean} isOnDevice
 * @returns {Matches}
 */
export function matchFrames(frames, test, isOnDevice) {
  const { size, parent, name, texts, total } = frames;
  const isNameMatch = Uint8Array.from(texts, (text) => Number(test(text)));
  const isMatch = new Uint8Array(size);
  // Whether a frame or one above it matches; parents come first, so one pass does.
  const isCovered = new Uint8Array(size);
  const list = new Int32Array(size + 1);
  let [count, hostTotal, deviceTotal] = [0, 0, 0];
  for (let frame = 0; frame < size; frame += 1) {
    const isBelow = parent[frame] >= 0 ? isCovered[parent[frame]] : 0;
    const matches = isNameMatch[name[frame]];
    isMatch[frame] = matches;
    isCovered[frame] = matches | isBelow;
    // Without a branch, which would be guessed wrong half of the time: the next match overwrites what is none.
    list[count] = frame;
    count += matches;
    if (matches & ~isBelow) {
      if (isOnDevice(frame)) deviceTotal += total[frame];
      else hostTotal += total[frame];
    }
  }
  return { isMatch, list: list.subarray(0, count), count, hostTotal, deviceTotal };
}

/** Returns the rows of a layout with nothing but the matches in them. @param {import("../layout/layout.js").Layout} layout @param {Matches} matches @returns {import("../layout/layout.js").Rows} */
export function matchRows({ row, rows, isInOrder }, { isMatch, list }) {
  const { starts, left, width } = rows;
  const matches = { starts: new Int32Array(starts.length), items: new Int32Array(list.length), left, width };
  if (isInOrder) scatter(matches, row, list);
  else filter(matches, rows, isMatch);
  return matches;
}

/** Sorts matches into rows, the fast way for frames in the order of their index. @param {import("../layout/layout.js").Rows} matches @param {Int32Array} row @param {Int32Array} list */
function scatter({ starts, items }, row, list) {
  for (let at = 0; at < list.length; at += 1) starts[row[list[at]] + 1] += 1;
  for (let at = 1; at < starts.length; at += 1) starts[at] += starts[at - 1];
  const next = starts.slice();
  for (let at = 0; at < list.length; at += 1) items[next[row[list[at]]]++] = list[at];
}

/** @param {import("../layout/layout.js").Rows} matches @param {import("../layout/layout.js").Rows} rows @param {Uint8Array} isMatch */
function filter(matches, { starts, items }, isMatch) {
  let next = 0;
  for (let row = 0; row + 1 < starts.length; row += 1) {
    for (let index = starts[row]; index < starts[row + 1]; index += 1) {
      if (isMatch[items[index]]) matches.items[next++] = items[index];
    }
    matches.starts[row + 1] = next;
  }
}

/**
 * Returns the match after (or, by step -1, before) a frame, from row to row and around the end; -1 if there is none.
 * @param {import("../layout/layout.js").Rows} rows matches only
 * @param {import("../layout/layout.js").Layout} layout
 * @param {number} frame -1 to begin
 * @param {number} step 1 or -1
 */
export function nextMatch({ starts, items, left }, layout, frame, step) {
  if (!items.length) return -1;
  if (frame < 0) return items[step > 0 ? 0 : items.length - 1];
  const row = layout.row[frame];
  let index = starts[row];
  while (index < starts[row + 1] && left[items[index]] < left[frame]) index += 1;
  while (index < starts[row + 1] && items[index] !== frame && left[items[index]] === left[frame]) index += 1;
  const isHere = index < items.length && items[index] === frame;
  const to = step > 0 ? index + Number(isHere) : index - 1;
  return items[(to + items.length) % items.length];
}
