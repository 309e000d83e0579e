// The parts of the flame graph's page, put together.

import { KEYS } from "../views/keys.js";
import { counted, duration } from "../../shared/units.js";
import { h } from "../../shared/dom.js";
import { keyList } from "../../shared/picture/key_list.js";
import { Tooltip } from "../../shared/picture/tooltip.js";
import { act, choose, keyed } from "./actions.js";
import { Crumbs } from "./crumbs.js";
import { Detail } from "./detail.js";
import { Legend } from "./legend.js";
import { MemoryTrack } from "../canvas/memory_track.js";
import { Minimap } from "../canvas/minimap.js";
import { Stage } from "../canvas/stage.js";
import { WheelHint } from "../canvas/wheel_hint.js";
import { FrameTable } from "../frame_table/frame_table.js";
import { openSandwich } from "./sandwich.js";
import { TimeRange } from "./time_range.js";
import { Toolbar } from "./toolbar.js";

const POINTER = "Pointer: click selects and zooms; Ctrl and wheel zooms; Shift and drag or wheel pans. In the overview above the frames, drag zooms, "
  + "the window and its edges can be dragged, click goes there, double-click shows all. In time order, drag selects a range and shows "
  + "its sums (by touch: drag on the axis); in other views, and by touch, drag pans. In the search, Enter and Shift+Enter go through the matches.";

/**
 * Makes all parts of the page, and their root.
 * @param {any} view the flame graph that the parts call
 * @param {import("../data/data.js").Trace | null} trace
 * @param {import("../data/data.js").Trace | null} base what it is compared with
 * @param {string[]} hidden choices that the tool line leaves out
 * @param {string[]} notes on the difference to the base
 */
export function parts(view, trace, base, hidden, notes) {
  const id = `nbkit-${Math.random().toString(36).slice(2, 10)}`;
  const [range, hint] = [new TimeRange(view, trace), new WheelHint()];
  const minimap = new Minimap({ onMove: (camera) => stage.setCamera(camera), onAll: () => view.zoomTo(-1) });
  const stage = new Stage({
    id, onHover: (frame, point) => view.point(frame, point), onClick: (frame) => view.enter(frame), onCamera: () => view.moved(),
    onRange: (part, isDone) => range.drag(part, isDone), onWheel: (hasZoomed) => (hasZoomed ? hint.end() : hint.show()),
    onDraw: (scene, camera, width) => minimap.draw(scene, camera, width),
  });
  stage.element.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => keyed(view, event));
  stage.element.addEventListener("focus", () => arrive(view, stage));
  stage.element.addEventListener("blur", () => view.tip.hide());
  const tools = new Toolbar({
    hidden, onChange: (change) => view.change(change), onSearch: (text) => view.search(text), onStep: (step) => view.step(step),
    onFold: () => act(view, "fold"), onFlip: () => act(view, "flip"), onTable: () => act(view, "table"), onHelp: () => act(view, "help"), onLeave: () => stage.element.focus(),
  });
  const made = {
    stage, minimap, hint, tools, range, tip: new Tooltip(), legend: new Legend(), help: keyList(KEYS, POINTER),
    crumbs: new Crumbs({ onGo: (frame) => view.zoomTo(frame), onBack: () => view.zoomBack() }),
    detail: new Detail({ onClose: () => (view.select(-1), stage.element.focus()), onSandwich: () => openSandwich(view, view.selected) }),
    table: new FrameTable({ onChoose: (frame) => choose(view, frame) }),
    memory: new MemoryTrack(trace?.memory ?? []),
    status: h("div", { class: "nb-sr", role: "status", "aria-live": "polite" }),
    problem: h("div", { class: "nb-problem", role: "alert", hidden: true }),
  };
  return { ...made, root: trace?.count ? page(made, trace, base, notes) : nothing(trace) };
}

/** Gives keys that reach the stage a frame to start from. @param {any} view @param {Stage} stage */
function arrive(view, stage) {
  if (!stage.element.matches(":focus-visible") || stage.isPressed) return;
  if (view.focus < 0) act(view, "heaviest");
  else view.focusOn(view.focus);
}

/** @param {any} made @param {import("../data/data.js").Trace} trace @param {import("../data/data.js").Trace | null} base @param {string[]} notes */
function page(made, trace, base, notes) {
  const { tools, problem, help: keys, crumbs, legend, minimap, stage, hint, memory, range, detail, table, tip, status } = made;
  const shown = h("div", { class: "nb-flame-view" }, minimap.element, h("div", { class: "nb-flame-frame" }, stage.element, hint.element), memory.element);
  // Lumino would take the keys for the notebook, in its capture phase; this attribute keeps it out.
  return h("div", { class: "nbkit nbkit-picture nbkit-flamegraph", "data-lm-suppress-shortcuts": "true" },
    header({ ...trace, notes: [...trace.notes, ...notes] }, base), tools.element, problem, keys, crumbs.element, legend.element, shown, range.element, detail.element, table.element, tip.element, status);
}

/** @param {import("../data/data.js").Trace} trace @param {import("../data/data.js").Trace | null} base */
function header({ title, count, complete, notes, columns }, base) {
  const { parent, start, total } = columns;
  let end = 0;
  for (let row = 0; row < count; row += 1) {
    if (parent[row] < 0 && start[row] + total[row] > end) end = start[row] + total[row];
  }
  const figures = [counted(count, "frame"), duration(end - start[0])].map((text) => h("span", {}, text));
  const list = h("ul", { class: "nb-notes", "aria-label": "Notes" }, ...notes.map((note) => h("li", {}, note)));
  return h("div", { class: "nb-header" },
    h("div", { class: "nb-title-line" }, h("span", { class: "nb-title" }, title || "flame graph"), h("div", { class: "nb-figures" }, ...figures, base ? h("span", {}, `compared with ${base.title || "another trace"}`) : null)),
    complete ? null : h("div", { class: "nb-incomplete", role: "note" }, h("strong", {}, "INCOMPLETE"), " The recording ended before the step did."),
    notes.length ? list : null);
}

/** @param {import("../data/data.js").Trace | null} trace */
function nothing(trace) {
  return h("div", { class: "nbkit nbkit-picture nbkit-flamegraph" },
    h("div", { class: "nb-header" }, h("span", { class: "nb-title" }, trace?.title || "flame graph")),
    h("p", { class: "nb-flame-nothing" }, "No op was recorded, so there is no frame to show."));
}
