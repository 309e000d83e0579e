// The colors that the canvas takes from the page, and when they change.

const PROPERTIES = { page: "backgroundColor", text: "color", line: "borderTopColor", accent: "outlineColor", raised: "columnRuleColor" };

/** @typedef {Record<keyof typeof PROPERTIES, string> & {font: string}} Theme */

/** What is drawn with until the page is known. @type {Theme} */
export const PLAIN = { page: "#fff", text: "#000", line: "#ccc", accent: "#00f", raised: "#eee", font: "monospace" };

/** Reads the colors of an element as the style sheet sets them. @param {Element} element @returns {Theme} */
export function themeOf(element) {
  const style = /** @type {any} */ (getComputedStyle(element));
  const colors = Object.fromEntries(Object.entries(PROPERTIES).map(([name, property]) => [name, style[property]]));
  return /** @type {any} */ ({ ...colors, font: style.fontFamily });
}

/** Tells whether two themes have the same colors. @param {Theme} left @param {Theme} right */
export function isSame(left, right) {
  return Object.entries(left).every(([name, value]) => /** @type {Record<string, string>} */ (right)[name] === value);
}

/**
 * Calls `changed` when the host, the system or a printer changes the theme; returns a function that ends that.
 *
 * Whatever changed them, the style sheet lets the colors of `element` change in a short transition, whose end is waited for.
 * @param {Element} element @param {() => void} changed
 */
export function watchTheme(element, changed) {
  const hosts = new MutationObserver(changed);
  for (const host of [document.documentElement, document.body]) {
    hosts.observe(host, { attributes: true, attributeFilter: ["class", "style", "theme", "data-jp-theme-light", "data-jp-theme-name", "data-vscode-theme-kind"] });
  }
  const turned = (/** @type {Event} */ event) => event.target === element && changed();
  element.addEventListener("transitionend", turned);
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const print = (/** @type {Event} */ event) => {
    element.toggleAttribute("data-print", event.type === "beforeprint");
    changed();
  };
  system.addEventListener("change", changed);
  window.addEventListener("beforeprint", print);
  window.addEventListener("afterprint", print);
  return () => {
    hosts.disconnect();
    element.removeEventListener("transitionend", turned);
    system.removeEventListener("change", changed);
    window.removeEventListener("beforeprint", print);
    window.removeEventListener("afterprint", print);
  };
}
