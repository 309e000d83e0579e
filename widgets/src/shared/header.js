// The header: what was recorded, how long, the phases, what was skipped, and whether it is incomplete.

import { h } from "./dom.js";

/** How the notes begin that say what a verb leaves out; nbkit/views/summary/facts.py has it, too. */
const SKIPPED = "skipped ";

/** @param {any} overview the widget's `overview` trait */
export function header(overview) {
  const figures = overview.figures.map((/** @type {[string, string]} */ [label, value]) => h("div", {}, h("dt", {}, label), h("dd", {}, value)));
  return h(
    "div",
    { class: "nb-header" },
    h("div", { class: "nb-title-line" }, h("span", { class: "nb-title" }, overview.title), h("dl", { class: "nb-figures" }, ...figures)),
    overview.incomplete ? incomplete(overview.incomplete) : null,
    overview.phases.length ? phases(overview.phases, overview.counted) : null,
    ...notes(overview.notes),
  );
}

function incomplete(/** @type {string} */ why) {
  return h("div", { class: "nb-incomplete", role: "note" }, h("strong", {}, "INCOMPLETE"), ` ${why}`);
}

/** @param {any[]} list @param {string} counted */
function phases(list, counted) {
  const parts = list.map(({ phase, us }) => {
    const part = h("span", { "data-phase": phase });
    part.style.flexGrow = String(us);
    return part;
  });
  const labels = list.map(({ phase, calls, time }) =>
    h("li", {}, h("span", { class: "nb-phase", "data-phase": phase }, phase), h("span", {}, time), h("span", { class: "nb-muted" }, calls)),
  );
  return h(
    "div",
    { class: "nb-phases" },
    h("div", { class: "nb-phase-bar", "aria-hidden": "true" }, ...parts),
    h("ul", { "aria-label": `Phases: self time of ${counted}` }, ...labels),
  );
}

/** Makes the notes; what a verb leaves out of every step stands in details. @param {string[]} all */
function notes(all) {
  const list = (/** @type {string[]} */ some, /** @type {string | null} */ label) => h("ul", { class: "nb-notes", "aria-label": label }, ...some.map((note) => h("li", {}, note)));
  const [skipped, others] = [true, false].map((isSkip) => all.filter((note) => note.startsWith(SKIPPED) === isSkip));
  return [
    ...(others.length ? [list(others, "Notes")] : []),
    ...(skipped.length ? [h("details", { class: "nb-skipped" }, h("summary", {}, "What is not shown"), list(skipped, null))] : []),
  ];
}
