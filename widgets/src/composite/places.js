// Leads from words to the rows that they speak of, and from a selected row back to the finding about it.

import { backButton } from "../shared/finding_back.js";

/** The traits that hold what is selected, by the name in a link: of the first part that is there. @type {Record<string, [string, string][]>} */
const TRAITS = {
  op_table: [["op_table", "selected_op_id"], ["flamegraph", "selected_op_id"]],
  diff_table: [["diff_table", "selected_row"]],
  alignment_table: [["diff_table", "selected_row"]],
  graph: [["graph", "selected_node_id"]],
};

/** @typedef {{name: string, element: HTMLElement}} Part */

/** Returns the part that a link leads to and its trait, null for none. @param {string} widget @param {Part[]} parts */
export function targetOf(widget, parts) {
  const names = parts.map(({ name }) => name);
  const found = (TRAITS[widget] ?? []).find(([name]) => names.includes(name));
  return found ? { part: parts[names.indexOf(found[0])], trait: `${found[0]}_${found[1]}` } : null;
}

/**
 * Links the buttons in `above` with the parts; calling what comes back ends it.
 * @param {any} model @param {HTMLElement} above @param {Part[]} parts
 */
export function linkPlaces(model, above, parts) {
  const chosen = () => above.querySelector(".nbkit-chosen");
  const back = backButton(chosen);
  above.after(back);
  const buttons = () => /** @type {HTMLElement[]} */ ([...above.querySelectorAll("button[data-value]")]);
  // Where a widget has no part for them, words lead nowhere.
  for (const button of buttons()) if (!targetOf(button.dataset.widget ?? "", parts)) button.replaceWith(button.textContent ?? "");
  const targets = () => buttons().map((button) => ({ button, value: Number(button.dataset.value), target: targetOf(button.dataset.widget ?? "", parts) }));
  const mark = () => {
    const items = new Map(targets().map(({ button }) => [button.closest("li"), false]));
    for (const { button, value, target } of targets()) {
      if (target && model.get(target.trait) === value) items.set(button.closest("li"), true);
    }
    for (const [item, isChosen] of items) item?.classList.toggle("nbkit-chosen", isChosen);
    back.hidden = !chosen();
  };
  const go = (/** @type {MouseEvent} */ event) => {
    const button = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest("button[data-widget]"));
    const target = button && targetOf(button.dataset.widget ?? "", parts);
    if (!button || !target) return;
    if (button.dataset.value !== undefined) {
      // What is selected already is to be brought into view once more.
      model.set(target.trait, null);
      model.set(target.trait, Number(button.dataset.value));
      model.save_changes();
    }
    target.part.element.scrollIntoView({ block: "nearest" });
  };
  const traits = [...new Set(Object.keys(TRAITS).map((widget) => targetOf(widget, parts)?.trait).filter(Boolean))];
  above.addEventListener("click", go);
  for (const trait of traits) model.on(`change:${trait}`, mark);
  mark();
  return () => {
    above.removeEventListener("click", go);
    for (const trait of traits) model.off(`change:${trait}`, mark);
    back.remove();
  };
}
