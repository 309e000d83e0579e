// The list of keys.

import { KEYS } from "../../lib/graph/moves.js";
import { h } from "../dom.js";

/** @type {Record<string, string>} */
const SHOWN = { " ": "Space", ArrowDown: "↓", ArrowUp: "↑", ArrowLeft: "←", ArrowRight: "→", Escape: "Esc", Home: "Home", End: "End", Enter: "Enter", N: "⇧N" };

export function help() {
  const rows = KEYS.map(([keys, , text]) => h("div", {}, h("dt", {}, ...keys.map((key) => h("kbd", {}, SHOWN[key] ?? key.toUpperCase()))), h("dd", {}, text)));
  const pointer = h("p", {}, "Pointer: click selects, a click on + or − opens or closes, so does a double click. Drag moves; Ctrl and wheel zooms, and so does the wheel alone once the picture has the focus. Two fingers zoom.");
  return h("section", { class: "nb-graph-help", "aria-label": "Keys", hidden: true }, h("dl", {}, ...rows), pointer);
}
