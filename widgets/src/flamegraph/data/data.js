// The columns of a trace as typed arrays, whatever buffers they came in.

const INTEGERS = ["parent", "track", "op", "module", "phase", "level", "device", "source", "shapes"];
const FLOATS = ["start", "total", "self", "device_self", "flops", "bytes"];

/**
 * @typedef {object} Trace
 * @property {string} title
 * @property {number} count
 * @property {boolean} complete
 * @property {string[]} notes
 * @property {Record<string, string[]>} strings
 * @property {{name: string, kind: string}[]} tracks
 * @property {Record<string, any>} columns typed arrays; row i is op_id i
 * @property {{device: string, time: Float64Array, allocated: Float64Array}[]} memory
 * @property {Record<string, string>} repeats by the path of a module that is one of several alike: the last part that they share
 * @property {Map<string, number>} [repeated] of a folded trace: how many modules a shared path stands for
 */

/** Reads a trace from the widget's `flame` state; null stays null. @param {any} flame @returns {Trace | null} */
export function decode(flame) {
  if (!flame) return null;
  /** @type {Record<string, any>} */
  const columns = {};
  for (const name of INTEGERS) columns[name] = typed(flame.columns[name], Int32Array);
  for (const name of FLOATS) columns[name] = typed(flame.columns[name], Float64Array);
  const memory = (flame.memory ?? []).map((/** @type {any} */ { device, time, allocated }) => (
    { device, time: typed(time, Float64Array), allocated: typed(allocated, Float64Array) }));
  return {
    title: flame.title ?? "", count: flame.count, complete: flame.complete !== false, notes: flame.notes ?? [],
    strings: flame.strings, tracks: flame.tracks, columns, memory, repeats: flame.repeats ?? {},
  };
}

/**
 * What is known of the noise between a trace and its base.
 * @typedef {object} Noise
 * @property {[number, number]} repeats of the base and of the trace
 * @property {string[]} notes
 * @property {number} factor single recordings are colored from so many times as long or short on,
 * @property {number} share and from this share of all time on
 * @property {Record<string, Judged>} views by grouping and clock ("none host"); none without repeats of both
 *
 * @typedef {{row: Int32Array, up: Int32Array, own: Int32Array, usual: Float64Array, change: Float64Array, noise: Float64Array}} Judged
 *   frames that the noise was compared with: each so many (`up`) above that of a `row`; times in microseconds
 */

/** Reads the noise from the widget's `difference` state; null stays null. @param {any} state @returns {Noise | null} */
export function decodeNoise(state) {
  if (!state) return null;
  const views = Object.entries(state.views).map(([name, { columns }]) => {
    const integers = ["row", "up", "own"].map((column) => [column, typed(columns[column], Int32Array)]);
    const floats = ["usual", "change", "noise"].map((column) => [column, typed(columns[column], Float64Array)]);
    return [name, Object.fromEntries([...integers, ...floats])];
  });
  return { repeats: state.repeats, notes: state.notes, factor: state.single_factor, share: state.single_share, views: Object.fromEntries(views) };
}

/** Returns the bytes as an array of their type, without a copy where they are aligned. @param {any} bytes @param {any} Type */
export function typed(bytes, Type) {
  if (bytes instanceof Type) return bytes;
  const view = ArrayBuffer.isView(bytes) ? bytes : new Uint8Array(bytes ?? 0);
  const { buffer, byteOffset, byteLength } = view;
  const length = Math.floor(byteLength / Type.BYTES_PER_ELEMENT);
  if (byteOffset % Type.BYTES_PER_ELEMENT === 0) return new Type(buffer, byteOffset, length);
  return new Type(buffer.slice(byteOffset, byteOffset + length * Type.BYTES_PER_ELEMENT));
}

/** Tells which tracks are those of a device. @param {Trace} trace */
export function deviceTracks(trace) {
  return trace.tracks.map(({ kind }) => kind === "device");
}

/** Tells whether the trace knows times of a device. @param {Trace} trace */
export function hasDeviceTime(trace) {
  if (deviceTracks(trace).includes(true)) return true;
  const times = trace.columns.device_self;
  for (let row = 0; row < times.length; row += 1) if (times[row] > 0) return true;
  return false;
}

/** Returns the indices 0..n-1. @param {number} count */
export function range(count) {
  const values = new Int32Array(count);
  for (let index = 0; index < count; index += 1) values[index] = index;
  return values;
}
