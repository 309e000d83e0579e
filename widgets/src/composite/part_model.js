// The model of one part: the traits of the whole that bear its name, and the messages that are addressed to it.

const CHANGE = "change:";
const MESSAGE = "msg:custom";

/** @param {any} model the model of the whole @param {string} part what stands before the names of the part's traits */
export function partModel(model, part) {
  const own = (/** @type {string} */ event) => (event.startsWith(CHANGE) ? `${CHANGE}${part}_${event.slice(CHANGE.length)}` : event);
  /** @type {Map<Function, Function>} */
  const receivers = new Map();
  /** Makes a listener to messages that hears only those to the part. @param {Function} listener */
  const receiver = (listener) => {
    const receive = (/** @type {any} */ message, /** @type {any} */ buffers) => message.part === part && listener(message.content, buffers);
    receivers.set(listener, receive);
    return receive;
  };
  return {
    get: (/** @type {string} */ name) => model.get(`${part}_${name}`),
    set: (/** @type {string} */ name, /** @type {any} */ value) => model.set(`${part}_${name}`, value),
    on: (/** @type {string} */ event, /** @type {Function} */ listener) => model.on(own(event), event === MESSAGE ? receiver(listener) : listener),
    off: (/** @type {string} */ event, /** @type {Function} */ listener) => model.off(own(event), event === MESSAGE ? receivers.get(listener) : listener),
    save_changes: () => model.save_changes(),
    send: (/** @type {any} */ content) => model.send({ part, content }),
    get widget_manager() {
      return model.widget_manager;
    },
  };
}
