// The stand-in of an exported page for anywidget's model: what a widget uses of it, without a kernel.

/**
 * Makes a model of these traits. `answer` gives the answer to a message that the widget sends, which comes as the kernel's
 * would: later, as "msg:custom"; without it messages get none. What the widget saves stays in the model, and whoever
 * listens to it hears of each change.
 * @param {Record<string, any>} traits
 * @param {(message: any) => any} [answer]
 */
export function standInModel(traits, answer) {
  const state = { ...traits };
  /** @type {Map<string, Set<Function>>} */
  const listeners = new Map();
  const tell = (/** @type {string} */ name, /** @type {any[]} */ ...values) => {
    for (const listener of [...(listeners.get(name) ?? [])]) listener(...values);
  };
  return {
    get: (/** @type {string} */ name) => state[name] ?? null,
    set(/** @type {string} */ name, /** @type {any} */ value) {
      if ((state[name] ?? null) === value) return;
      state[name] = value;
      tell(`change:${name}`);
    },
    on(/** @type {string} */ name, /** @type {Function} */ listener) {
      listeners.set(name, (listeners.get(name) ?? new Set()).add(listener));
    },
    off(/** @type {string} */ name, /** @type {Function} */ listener) {
      listeners.get(name)?.delete(listener);
    },
    save_changes() {},
    send(/** @type {any} */ message) {
      if (answer) queueMicrotask(() => tell("msg:custom", answer(message), []));
    },
  };
}
