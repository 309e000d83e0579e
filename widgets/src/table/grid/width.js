// Column widths: a handle at the end of a column's name to drag, and keys that do the same.

import { h } from "../../shared/dom.js";

const STEP = 16;

/** Makes the handle; a double click gives the column its own width back. @param {(width: number | null) => void} onWidth in pixels */
export function widthHandle(onWidth) {
  /** @type {{x: number, width: number} | null} */
  let start = null;
  const handle = h("span", {
    class: "nb-width", "aria-hidden": "true", title: "Drag to make the column wider or narrower; double-click for its first width",
    onpointerdown(/** @type {PointerEvent} */ event) {
      start = { x: event.clientX, width: handle.parentElement.offsetWidth };
      handle.setPointerCapture(event.pointerId);
      event.preventDefault();
    },
    onpointermove(/** @type {PointerEvent} */ event) {
      if (start) onWidth(start.width + event.clientX - start.x);
    },
    onpointerup: () => (start = null),
    onpointercancel: () => (start = null),
    ondblclick: () => onWidth(null),
    onclick: (/** @type {MouseEvent} */ event) => event.stopPropagation(),
  });
  return handle;
}

/** Makes a column wider or narrower by Shift and an arrow key at its name. @param {KeyboardEvent} event @param {(width: number | null) => void} onWidth */
export function widthKey(event, onWidth) {
  const { width } = /** @type {HTMLElement} */ (event.currentTarget).getBoundingClientRect();
  const step = { ArrowRight: STEP, ArrowLeft: -STEP }[event.key];
  if (!event.shiftKey || step === undefined) return;
  onWidth(width + step);
  event.preventDefault();
  event.stopPropagation();
}
