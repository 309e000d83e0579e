// The button that leads from a selected row back to the finding about it.

import { h } from "./dom.js";

/** Returns the button, which is hidden until there is such a finding. @param {() => Element | null | undefined} finding */
export function backButton(finding) {
  const back = () => finding()?.scrollIntoView({ block: "center" });
  return h("button", { type: "button", class: "nbkit-back", hidden: true, onclick: back }, "↑ The finding about this row");
}
