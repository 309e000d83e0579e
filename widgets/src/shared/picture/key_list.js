// The list of keys of a picture, and what the pointer does.

import { h } from "../dom.js";

/** @type {Record<string, string>} */
const SHOWN = { " ": "Space", ArrowDown: "↓", ArrowUp: "↑", ArrowLeft: "←", ArrowRight: "→", Escape: "Esc", Home: "Home", End: "End", Enter: "Enter", N: "⇧N", Shift: "⇧" };

/** @param {import("../keys.js").Keys} keys @param {string} pointer @param {string} [label] */
export function keyList(keys, pointer, label = "Keys") {
  const rows = keys.map(([names, , text]) => h("div", {}, h("dt", {}, ...names.map((name) => h("kbd", {}, SHOWN[name] ?? name.toUpperCase()))), h("dd", {}, text)));
  return h("section", { class: "nb-keys", "aria-label": label, hidden: true }, h("dl", {}, ...rows), h("p", {}, pointer));
}
