// What a widget uses of anywidget's model, in a page without a kernel.

/**
 * A model of these traits. What the widget asks is answered by `answer`, later, as by a kernel.
 *
 * @param {Record<string, any>} traits @param {(message: any) => any} [answer]
 */
export function standInModel(traits, answer) {
  const state = { ...traits };
  /** @type {Map<string, Set<Function>>} */
  const listeners = new Map();
  const fire = (/** @type {string} */ event, /** @type {any} */ value) => {
    for (const listener of [...(listeners.get(event) ?? [])]) listener(value);
  };
  return {
    get: (/** @type {string} */ name) => state[name] ?? null,
    set(/** @type {string} */ name, /** @type {any} */ value) {
      if (state[name] === value) return;
      state[name] = value;
      fire(`change:${name}`, value);
    },
    on: (/** @type {string} */ event, /** @type {Function} */ listener) => {
      listeners.set(event, (listeners.get(event) ?? new Set()).add(listener));
    },
    off: (/** @type {string} */ event, /** @type {Function} */ listener) => listeners.get(event)?.delete(listener),
    save_changes() {},
    send(/** @type {any} */ message) {
      if (answer) queueMicrotask(() => fire("msg:custom", answer(message)));
    },
  };
}
