// A widget's model with its binary traits whole: what the host did not carry in the state is fetched as text, in pieces.
// nbkit/views/live/pieces.py is the other side.

import { fromBase64, toBase64 } from "../shared/base64.js";
import { h } from "../shared/dom.js";
import { inflated } from "../shared/unpack.js";
import { createRequests } from "../table/requests.js";

const HEADER_BYTES = 4;
const WAITING = "Waiting for the kernel to send the data.";
const NOT_CARRIED = "The data did not arrive: ";

/**
 * Makes the `render` of a widget whose `traits` hold binary data: `render` draws once they are whole, and hears of a change
 * when the new value is.
 * @param {string[]} traits @param {(context: {model: any, el: HTMLElement}) => any} render
 */
export function onWhole(traits, render) {
  return async (/** @type {{model: any, el: HTMLElement}} */ { model, el }) => {
    const note = h("p", { class: "nbkit", role: "status" });
    const whole = wholeModel(model, traits, (text) => {
      note.textContent = text;
      if (text) el.prepend(note);
      else note.remove();
    });
    const isMissing = (await whole.load()).some(Boolean);
    const end = isMissing || (await render({ model: whole, el }));
    return () => {
      whole.close();
      note.remove();
      isMissing || end();
    };
  };
}

/** @param {any} model @param {string[]} traits @param {(text: string) => void} say what to show while data are on their way, and why they do not come */
function wholeModel(model, traits, say) {
  /** @type {Record<string, any>} */
  const values = {};
  /** @type {Map<string, Set<Function>>} */
  const listeners = new Map(traits.map((name) => [`change:${name}`, new Set()]));
  let isBinary = true;
  const requests = createRequests((message) => model.send(message), {
    name: `${Math.random()}`, onWait: () => say(WAITING),
  });

  async function load(/** @type {string} */ name) {
    const value = model.get(name);
    if (value?.binary === undefined) return void (values[name] = value ?? null);
    const isCarried = bytesIn(value) === value.binary;
    isBinary &&= isCarried;
    const found = isCarried ? value : await fetched(name);
    // A value that was replaced meanwhile is not the one to show.
    if (found) values[name] = found.bytes ?? found;
  }

  /** @param {string} name */
  async function fetched(name) {
    const pieces = [];
    let size = 1;
    let at = 0;
    while (at < size) {
      const answer = /** @type {any} */ (await requests.ask(name, { kind: "piece", trait: name, offset: at }));
      if (!answer) return null;
      size = answer.size;
      const piece = fromBase64(answer.text);
      pieces.push(piece);
      at += piece.length;
    }
    say("");
    return unpacked(await inflated(await new Blob(pieces).arrayBuffer()));
  }

  const guarded = (/** @type {string} */ name) => load(name).catch((error) => (say(`${NOT_CARRIED}${error.message}`), true));
  const changes = traits.map((name) => /** @type {const} */ ([`change:${name}`, async () => {
    await guarded(name);
    for (const listener of [...(listeners.get(`change:${name}`) ?? [])]) listener();
  }]));
  model.on("msg:custom", requests.receive);
  for (const [event, listener] of changes) model.on(event, listener);
  return {
    load: () => Promise.all(traits.map(guarded)),
    close() {
      requests.close();
      model.off("msg:custom", requests.receive);
      for (const [event, listener] of changes) model.off(event, listener);
    },
    get: (/** @type {string} */ name) => (name in values ? values[name] : model.get(name)),
    // Where bytes did not come this way, they would not go the other.
    set: (/** @type {string} */ name, /** @type {any} */ value) => model.set(name, isBinary || !value?.ids ? value : { ...value, ids: toBase64(value.ids) }),
    on: (/** @type {string} */ name, /** @type {Function} */ listener) => listeners.get(name)?.add(listener) ?? model.on(name, listener),
    off: (/** @type {string} */ name, /** @type {Function} */ listener) => listeners.get(name)?.delete(listener) ?? model.off(name, listener),
    save_changes: () => model.save_changes(),
  };
}

/** Counts the bytes of all binary data in a value. @param {any} value @returns {number} */
function bytesIn(value) {
  if (value instanceof ArrayBuffer || ArrayBuffer.isView(value)) return value.byteLength;
  if (value === null || typeof value !== "object") return 0;
  return Object.values(value).reduce((sum, part) => sum + bytesIn(part), 0);
}

/** Reads what packed() wrote, once it is inflated. @param {Uint8Array} bytes */
function unpacked(bytes) {
  const end = HEADER_BYTES + new DataView(bytes.buffer).getUint32(0, true);
  let at = end;
  return JSON.parse(new TextDecoder().decode(bytes.subarray(HEADER_BYTES, end)), (_, value) => {
    if (typeof value?.$bytes !== "number") return value;
    at += value.$bytes;
    return bytes.subarray(at - value.$bytes, at);
  });
}
