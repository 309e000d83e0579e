// The list of keys.

import { KEYS } from "../../lib/flame/keys.js";
import { h } from "../dom.js";

/** @type {Record<string, string>} */
const SHOWN = { " ": "Space", ArrowDown: "↓", ArrowUp: "↑", ArrowLeft: "←", ArrowRight: "→", Escape: "Esc", Home: "Home", End: "End", Enter: "Enter", N: "⇧N" };

export function help() {
  const rows = KEYS.map(([keys, , text]) => h("div", {}, h("dt", {}, ...keys.map((key) => h("kbd", {}, SHOWN[key] ?? key.toUpperCase()))), h("dd", {}, text)));
  const pointer = h("p", {}, "Pointer: click selects and zooms; Ctrl and wheel zooms; drag or Shift and wheel pans. In the search, Enter and Shift+Enter go through the matches.");
  return h("section", { class: "nb-flame-help", "aria-label": "Keys", hidden: true }, h("dl", {}, ...rows), pointer);
}
