// Min, median and max of groups: over their rows, or over the sums of instances such as layers; nbkit/analysis/query/groups.py is the kernel's.

/** Returns the columns min, median and max, and with `keys` of each row's instance how many of these a group has. @param {Float64Array} values @param {import("./groups.js").Parts} parts @param {Int32Array | null} keys */
export function spreadOf(values, { rows, starts }, keys) {
  const count = starts.length - 1;
  const [min, median, max, instances] = [0, 1, 2, 3].map(() => new Float64Array(count).fill(NaN));
  for (let group = 0; group < count; group += 1) {
    const inside = rows.subarray(starts[group], starts[group + 1]).filter((row) => !Number.isNaN(values[row]));
    const sorted = (keys ? sums(values, inside, keys) : Float64Array.from(inside, (row) => values[row])).sort();
    const { length } = sorted;
    instances[group] = length;
    if (!length) continue;
    const [below, above] = [sorted[(length - 1) >> 1], sorted[length >> 1]];
    [min[group], median[group], max[group]] = [sorted[0], below === above ? below : below / 2 + above / 2, sorted[length - 1]];
  }
  return keys ? { min, median, max, instances } : { min, median, max };
}

/** @param {Float64Array} values @param {Int32Array} rows @param {Int32Array} keys */
function sums(values, rows, keys) {
  /** @type {Map<number, number>} */
  const totals = new Map();
  for (const row of rows) totals.set(keys[row], (totals.get(keys[row]) ?? 0) + values[row]);
  return Float64Array.from(totals.values());
}
