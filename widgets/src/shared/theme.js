// The colours that the canvas takes from the page, and when they change.

const PROPERTIES = { page: "backgroundColor", text: "color", line: "borderTopColor", accent: "outlineColor", raised: "columnRuleColor" };

/** Colours of an element as the style sheet sets them. @param {Element} element @returns {Record<keyof typeof PROPERTIES, string> & {font: string}} */
export function themeOf(element) {
  const style = /** @type {any} */ (getComputedStyle(element));
  const colors = Object.fromEntries(Object.entries(PROPERTIES).map(([name, property]) => [name, style[property]]));
  return /** @type {any} */ ({ ...colors, font: style.fontFamily });
}

/** Calls `changed` when the host, the system or a printer changes the theme; gives back what ends that. @param {Element} element @param {() => void} changed */
export function watchTheme(element, changed) {
  const hosts = new MutationObserver(changed);
  for (const host of [document.documentElement, document.body]) {
    hosts.observe(host, { attributes: true, attributeFilter: ["class", "style", "theme", "data-jp-theme-light", "data-jp-theme-name", "data-vscode-theme-kind"] });
  }
  // JupyterLab swaps the style sheet after the attribute, so its end is waited for too.
  const sheets = new MutationObserver(() => window.setTimeout(changed, 60));
  sheets.observe(document.head, { childList: true });
  const loaded = () => changed();
  document.addEventListener("load", loaded, true);
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
    sheets.disconnect();
    document.removeEventListener("load", loaded, true);
    system.removeEventListener("change", changed);
    window.removeEventListener("beforeprint", print);
    window.removeEventListener("afterprint", print);
  };
}
