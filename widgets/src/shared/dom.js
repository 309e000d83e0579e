// Small helpers to build elements; text only ever gets in as text.

/**
 * Makes an element with attributes and children. `on...` attributes are listeners; null, undefined and false are left out.
 * @param {string} tag
 * @param {Record<string, any>} [attributes]
 * @param {...(Node | string | null)} children
 * @returns {any}
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** Makes a button with a text, or with one letter and a title that says what it does. @param {string} text @param {string} title @param {() => void} onclick */
export function button(text, title, onclick) {
  return h("button", { type: "button", title, "aria-label": text.length === 1 ? title : null, onclick }, text);
}

/** Makes the mark of a missing value: a dash to see, "null" to hear. */
export function nullMark() {
  return h("span", { class: "nb-null" }, h("span", { "aria-hidden": "true" }, "—"), h("span", { class: "nb-sr" }, "null"));
}

/** Returns text, or the mark of a missing value. @param {string | null | undefined} text */
export function textOrNull(text) {
  return text === null || text === undefined ? nullMark() : document.createTextNode(text);
}

/** Calls `action` once typing pauses; `now()` does so at once. @param {() => void} action @param {number} pause */
export function debounced(action, pause) {
  let timer = 0;
  const cancel = () => {
    window.clearTimeout(timer);
    timer = 0;
  };
  const now = () => (cancel(), action());
  const later = () => {
    cancel();
    timer = window.setTimeout(now, pause);
  };
  return { later, cancel, now, isPending: () => timer !== 0 };
}
