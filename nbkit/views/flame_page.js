// The exported page's host of the flamegraph: unpacks the page's data and stands in for anywidget's model.

const HEADER_BYTES = 4;
const WIDE_COLUMNS = new Set(["start", "total", "self", "device_self", "flops", "bytes", "time", "allocated", "usual", "change", "noise"]);

/** Draws the widget in place of its static twin, which stays if anything goes wrong. @param {{render: Function}} widget */
async function nbkitStartPage(widget) {
  const [live, twin] = ["nbkit-live", "nbkit-twin"].map((id) => document.getElementById(id));
  if (!live || !twin) return;
  try {
    const state = await nbkitUnpack(document.getElementById("nbkit-data")?.textContent ?? "");
    live.hidden = false;
    await widget.render({ model: nbkitModel({ ...state, selected_op_id: null, selection: null }), el: live });
    twin.hidden = true;
  } catch (error) {
    live.hidden = true;
    console.error(error);
  }
}

/** What a widget uses of anywidget's model; nobody listens to what it saves. @param {Record<string, any>} state */
function nbkitModel(state) {
  /** @type {Map<string, Set<Function>>} */
  const listeners = new Map();
  return {
    get: (/** @type {string} */ name) => state[name] ?? null,
    set(/** @type {string} */ name, /** @type {any} */ value) {
      if (state[name] === value) return;
      state[name] = value;
      for (const listener of [...(listeners.get(`change:${name}`) ?? [])]) listener();
    },
    on: (/** @type {string} */ name, /** @type {Function} */ listener) => {
      listeners.set(name, (listeners.get(name) ?? new Set()).add(listener));
    },
    off: (/** @type {string} */ name, /** @type {Function} */ listener) => listeners.get(name)?.delete(listener),
    save_changes() {},
    send() {},
  };
}

/** The states by trait, as the notebook would send them; see flame_payload.py. @param {string} text */
async function nbkitUnpack(text) {
  const packed = Uint8Array.from(atob(text.trim()), (character) => character.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const headerEnd = HEADER_BYTES + new DataView(bytes.buffer).getUint32(0, true);
  const states = JSON.parse(new TextDecoder().decode(bytes.subarray(HEADER_BYTES, headerEnd)));
  const reader = { bytes, at: headerEnd };
  for (const state of Object.values(states)) {
    if (!state) continue;
    if (state.views) {
      for (const view of Object.values(state.views)) view.columns = nbkitColumns(reader, view.count, view.columns);
      continue;
    }
    state.columns = nbkitColumns(reader, state.count, state.columns);
    state.memory &&= state.memory.map((/** @type {any} */ { device, count, columns }) => (
      { device, ...nbkitColumns(reader, count, columns) }));
  }
  return states;
}

/** Columns as buffers. @param {any} reader @param {number} count @param {[string, string, number, number][]} packs */
function nbkitColumns(reader, count, packs) {
  /** @type {Record<string, any>} */
  const columns = {};
  for (const [name, way, scale, width] of packs) {
    const values = nbkitPlanes(reader, count, width);
    NBKIT_WAYS[way](values, columns);
    if (scale !== 1) for (let row = 0; row < count; row += 1) values[row] /= scale;
    columns[name] = WIDE_COLUMNS.has(name) ? values : Int32Array.from(values);
  }
  return Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, values.buffer]));
}

/** Whole numbers from their byte planes, lowest first. @param {any} reader @param {number} count @param {number} width */
function nbkitPlanes(reader, count, width) {
  const values = new Float64Array(count);
  for (let plane = 0, factor = 1; plane < width; plane += 1, factor *= 256) {
    for (let row = 0; row < count; row += 1) values[row] += factor * reader.bytes[reader.at + row];
    reader.at += count;
  }
  return values;
}

/** @param {number} value */
function nbkitUnfold(value) {
  return value % 2 ? -(value + 1) / 2 : value / 2;
}

/** Ways back from whole numbers to values, in place. @type {Record<string, (values: Float64Array, columns: any) => void>} */
const NBKIT_WAYS = {
  code: (values) => values.forEach((value, row) => (values[row] = value - 1)),
  known: (values) => values.forEach((value, row) => (values[row] = value ? value - 1 : NaN)),
  folded: (values) => values.forEach((value, row) => (values[row] = nbkitUnfold(value))),
  rows_up: (values) => values.forEach((value, row) => (values[row] = value ? row - value : -1)),
  running_sum(values) {
    let sum = 0;
    values.forEach((value, row) => (values[row] = sum += nbkitUnfold(value)));
  },
  // Self time: the total time less that of the children, and a rest that is nearly always 0.
  above_rest(values, { total, parent }) {
    const nanoseconds = total.map((/** @type {number} */ time) => Math.round(time * 1000));
    values.forEach((value, row) => (values[row] = nanoseconds[row] + nbkitUnfold(value)));
    parent.forEach((/** @type {number} */ above, /** @type {number} */ row) => {
      if (above >= 0) values[above] -= nanoseconds[row];
    });
  },
};
