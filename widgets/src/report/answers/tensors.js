// The tensors of a report: ids out of what was packed, and which rows belong to an op or a tensor.

/** What a report has of a tensor's statistics. */
const KEPT = 1;
const LEFT_OUT = 2;

/**
 * @typedef {{count: number, op_id: Float64Array, position: Float64Array, tensor_id: Float64Array,
 *   texts: Record<string, import("../columns/columns.js").TextColumn>, size_bytes: Float64Array, requires_grad: Int32Array,
 *   has_statistics: Int32Array, statistic: (name: string, row: number) => number, isLeftOut: (row: number) => boolean, isOutput: (row: number) => boolean}} Tensors
 */

/** Reads the columns; see nbkit/views/op_table/report_tensors.py. @param {any} data as unpacked @returns {Tensors} */
export function tensorColumns({ seen, fresh, position, statistics, ...data }) {
  const { op_id: opId, texts, has_statistics: has } = data;
  const recordOf = placesOf(has);
  const output = texts.role.values.indexOf("output");
  return {
    ...data, tensor_id: tensorIds(seen, fresh), position: positions(opId, texts.role.codes, position),
    statistic: (/** @type {string} */ name, /** @type {number} */ row) => (recordOf[row] < 0 ? NaN : statistics[name][recordOf[row]]),
    isLeftOut: (/** @type {number} */ row) => has[row] === LEFT_OUT,
    isOutput: (/** @type {number} */ row) => output >= 0 && texts.role.codes[row] === output,
  };
}

/** Returns how many tensors have statistics in the report, and of how many they were recorded. @param {Tensors} tensors @returns {[number, number]} */
export function statisticsCounts({ has_statistics: has }) {
  const kept = rowsWhere(has.length, (row) => has[row] === KEPT).length;
  return [kept, kept + rowsWhere(has.length, (row) => has[row] === LEFT_OUT).length];
}

/** Returns the rows of a mark per row. @param {number} count @param {(row: number) => boolean} test */
export function rowsWhere(count, test) {
  const rows = [];
  for (let row = 0; row < count; row += 1) if (test(row)) rows.push(row);
  return rows;
}

/** @param {Int32Array} seen @param {Float64Array} fresh */
function tensorIds(seen, fresh) {
  const ids = new Float64Array(seen.length);
  let [next, largest] = [0, -1];
  for (let row = 0; row < ids.length; row += 1) {
    // seen + 1 is how many rows ago the tensor was there, 0 for one that was not.
    ids[row] = seen[row] < 0 ? largest + 1 + fresh[next++] : ids[row - seen[row] - 1];
    largest = Math.max(largest, ids[row]);
  }
  return ids;
}

/** @param {Float64Array} opId @param {Int32Array} role @param {Float64Array} off */
function positions(opId, role, off) {
  const result = new Float64Array(off.length);
  for (let row = 0; row < off.length; row += 1) {
    const isNext = row > 0 && opId[row] === opId[row - 1] && role[row] === role[row - 1];
    result[row] = (isNext ? result[row - 1] + 1 : 0) + off[row];
  }
  return result;
}

/** Returns where the statistics of each row stand; -1 for none. @param {Int32Array} has */
function placesOf(has) {
  let count = 0;
  return has.map((kind) => (kind === KEPT ? count++ : -1));
}
