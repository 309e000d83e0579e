// What one flame graph shows: wires data, views, tools, stage, frame table and the model together.

import { fitted } from "./layout/camera.js";
import { selfByCategory } from "./views/colors.js";
import { decode, decodeNoise, hasDeviceTime } from "./data/data.js";
import { announcement, facts, nameOf, positionOf, singleRow } from "./views/describe.js";
import { Finder } from "./views/finder.js";
import { pathOf, rowsInside } from "./data/frames.js";
import { across, tableOf, tableViewOf } from "./frame_table/content.js";
import { placeOf, titleOf, Views } from "./views/views.js";
import { holding, Zoom } from "./layout/zoom.js";
import { counted } from "../shared/units.js";
import { parts } from "./controls/parts.js";
import { closeSandwich, withOp } from "./controls/sandwich.js";
import { watchTheme } from "../shared/theme.js";

/** How frames look before anything is shown. @type {{categories: import("../shared/picture/palette.js").Category[], codes: Uint8Array, change: (frame: number) => import("./views/describe.js").Change}} */
const NOTHING = { categories: [], codes: new Uint8Array(0), change: () => null };

export class FlameView {
  /** @param {any} model @param {HTMLElement} el */
  constructor(model, el) {
    this.model = model;
    this.trace = /** @type {any} */ (decode(model.get("flame")));
    const noise = decodeNoise(model.get("difference"));
    // Both belong together: a base that comes first waits for what is known of the difference to it.
    const base = noise && decode(model.get("base"));
    this.views = new Views(this.trace, base, noise);
    // A difference opens merged: in time order there is no place for what was removed. Each layer stands by itself, as one may have changed.
    const [order, color] = base ? ["heavy", "difference"] : ["time", "phase"];
    this.state = { order, group: "none", clock: "host", color, isFlame: false, isTable: false, isHelp: false, isFolded: !base, op: /** @type {string | null} */ (null) };
    this.finder = new Finder();
    this.zoom = new Zoom();
    this.focus = this.selected = this.hover = this.shownTop = -1;
    this.look = NOTHING;
    /** @type {any} the state before a sandwich */
    this.before = null;
    /** @type {number | null} the op that the model has selected, as far as this view knows */
    this.shownOp = null;
    const hidden = [...(base ? [] : ["difference"]), ...(this.views.hasRepeats ? [] : ["fold"]), ...(this.trace && hasDeviceTime(this.trace) ? [] : ["clock"])];
    const made = parts(this, this.trace, base, hidden, noise?.notes ?? []);
    this.stage = made.stage;
    this.hint = made.hint;
    this.tools = made.tools;
    this.range = made.range;
    this.tip = made.tip;
    this.legend = made.legend;
    this.help = made.help;
    this.crumbs = made.crumbs;
    this.detail = made.detail;
    this.table = made.table;
    this.memory = made.memory;
    this.status = made.status;
    this.problem = made.problem;
    this.root = made.root;
    el.append(this.root);
    this.unwatch = watchTheme(this.root, () => this.retheme());
    if (!this.trace?.count) return;
    this.show();
    this.stage.draw();
    this.selectFromOutside();
    this.range.adopt();
  }

  /** Returns what is shown now. */
  get view() {
    return this.views.view(this.state);
  }

  destroy() {
    this.unwatch();
    this.tools.destroy();
    this.stage.destroy();
    this.hint.end();
    this.root.remove();
  }

  retheme() {
    this.stage.draw();
    this.memory.draw(this.stage.camera, this.stage.width);
  }

  /** Whether roots stand below; a sandwich has its callers above. */
  get isFlame() {
    return this.state.isFlame && this.state.group !== "sandwich";
  }

  /** Changes what is shown and how; selection and focus stay on their rows. @param {object} change */
  change(change) {
    const old = this.view;
    Object.assign(this.state, withOp(this, change));
    const isOther = this.view !== old;
    if (isOther) {
      this.zoom = new Zoom();
      this.hover = -1;
      [this.focus, this.selected] = [this.focus, this.selected].map((frame) => across(old, frame, this.view));
    }
    this.show();
    if (!isOther) return;
    this.range.tell();
    this.mark(this.selected);
    this.search(this.finder.text);
    // The op of a sandwich is in the middle.
    if (this.view.frames.callers && this.view.frames.size) this.stage.reveal(Math.max(this.focus, 0));
    this.say(`${titleOf(this.state, this.views.hasRepeats)}, ${counted(this.view.frames.size, "frame")}`);
  }

  /** Draws everything after a change of the state. */
  show() {
    const { categories, codes } = this.views.colors(this.view, this.state);
    this.look = { categories, codes, change: this.views.changes(this.view, this.state) };
    const sums = this.views.once(`sums ${this.view.key} ${this.state.color}`, () => selfByCategory(this.view.frames, codes, categories.length));
    this.legend.show(categories, sums, this.views.legendNote(this.view, this.state));
    this.memory.element.hidden = this.memory.isEmpty || !this.view.isTimeline;
    this.tools.show(this.state);
    this.help.hidden = !this.state.isHelp;
    this.range.show();
    this.draw();
    this.drawPlace();
  }

  draw() {
    const { view, look, finder, focus, selected, hover } = this;
    this.stage.setScene({ view, ...look, matched: finder.rows, focus, selected, hover, isFlame: this.isFlame, range: this.range.shown });
  }

  /** The frame that is zoomed to, or the nearest above it that holds all that is in view. */
  get top() {
    return holding(this.view.frames, this.view.layout, this.zoom.top, this.stage.goal);
  }

  /** Draws breadcrumb and table: what depends on the frame that is zoomed to. */
  drawPlace() {
    const { frames } = this.view;
    const top = (this.shownTop = this.top);
    this.crumbs.show(pathOf(frames, top).map((frame) => ({ frame, name: nameOf(frames, frame) })));
    this.sayPlace();
    this.table.element.hidden = !this.state.isTable;
    if (!this.state.isTable) return;
    const tableView = tableViewOf(this.views, this.view, this.state);
    this.table.show(tableOf(tableView, across(this.view, top, tableView), this.finder.text));
  }

  sayPlace() {
    this.crumbs.showPlace(`${titleOf(this.state, this.views.hasRepeats)} · ${placeOf(this.view, this.stage.goal)}`, this.canGoBack);
  }

  get canGoBack() {
    return this.zoom.canGoBack || this.stage.isZoomed;
  }

  /** Follows the camera whenever it moved. */
  moved() {
    this.memory.draw(this.stage.camera, this.stage.width);
    if (this.top === this.shownTop) this.sayPlace();
    else this.drawPlace();
    if (this.tip.isOfFocus && this.focus >= 0) this.tip.place(this.stage.pointOf(this.focus), this.stage.element);
    else this.tip.hide();
  }

  /** @param {string} text */
  search(text) {
    this.finder.run(text, this.view);
    this.problem.textContent = this.finder.problem;
    this.problem.hidden = !this.finder.problem;
    const summary = this.finder.summary(this.view);
    this.tools.search.showMatches(summary, this.finder.count > 0, this.finder.meaning(this.view));
    if (summary) this.say(summary);
    this.draw();
    this.drawPlace();
  }

  /** Goes to the next or previous match. @param {number} step */
  step(step) {
    const to = this.finder.next(this.view, this.focus, step);
    if (to >= 0) this.focusOn(to);
  }

  /** Puts the keyboard's focus on a frame, shows and says what it is. @param {number} frame @param {boolean} [hasTip] */
  focusOn(frame, hasTip = true) {
    this.focus = frame;
    this.stage.reveal(frame);
    this.draw();
    this.describe();
    this.say(this.stage.item.textContent);
    if (!hasTip) return;
    this.tip.show(nameOf(this.view.frames, frame), this.facts(frame), true);
    this.tip.place(this.stage.pointOf(frame), this.stage.element);
  }

  describe() {
    const { view, focus } = this;
    const text = announcement(view, focus, this.look.change(focus));
    this.stage.describe(text, { ...positionOf(view, focus), isSelected: focus === this.selected });
  }

  /** @param {number} frame */
  facts(frame) {
    return facts(this.view, this.trace, frame, this.look.change(frame));
  }

  /** @param {string} text */
  say(text) {
    this.status.textContent = text;
  }

  /** Follows the pointer onto a frame, or onto none. @param {number} frame @param {{x: number, y: number}} point */
  point(frame, point) {
    if (frame !== this.hover) {
      this.hover = frame;
      this.draw();
      if (frame >= 0) this.tip.show(nameOf(this.view.frames, frame), this.facts(frame), false);
      else this.tip.hide();
    }
    if (frame >= 0) this.tip.place(point, this.stage.element);
  }

  /** Zooms to a frame and remembers the way back; -1 is all. @param {number} frame */
  zoomTo(frame) {
    const { ends, goal } = this.stage;
    const { layout, frames } = this.view;
    this.zoom.go(frame, goal);
    this.stage.moveTo(frame < 0 ? this.stage.whole : fitted(layout.left[frame], frames.width[frame], ends));
    this.drawPlace();
  }

  /** Selects a frame and tells the model; -1 is none. @param {number} frame */
  select(frame) {
    this.mark(frame);
    const { frames } = this.view;
    this.shownOp = frame < 0 ? null : singleRow(frames, frame);
    this.model.set("selection", frame < 0 ? null : { label: nameOf(frames, frame), ids: new DataView(rowsInside(frames, frame).buffer) });
    this.model.set("selected_op_id", this.shownOp);
    this.model.save_changes();
  }

  /** Shows a frame as the selected one. @param {number} frame */
  mark(frame) {
    this.selected = frame;
    this.tip.hide();
    if (frame < 0) this.detail.hide();
    else this.detail.show(nameOf(this.view.frames, frame), this.facts(frame));
    if (this.focus >= 0) this.describe();
    this.draw();
  }

  /** Selects a frame that was clicked, or on which Enter was pressed. @param {number} frame */
  enter(frame) {
    if (frame < 0) return this.range.clear();
    this.select(frame);
    this.zoomTo(frame);
    this.focusOn(frame, false);
  }

  /** Reveals the op that Python or another widget has selected. */
  selectFromOutside() {
    const opId = this.model.get("selected_op_id") ?? null;
    if (opId === this.shownOp || !this.trace?.count) return;
    this.shownOp = opId;
    if (opId === null || !(opId >= 0 && opId < this.trace.count)) return this.mark(-1);
    if (this.view.frames.of[opId] < 0) this.change({ order: "time", group: "none" });
    this.focus = this.view.frames.of[opId];
    this.mark(this.focus);
    this.stage.reveal(this.focus);
  }

  /** Goes one step back (tooltip, range, details, zoom, sandwich, search) and tells whether there was one. */
  back() {
    if (!this.tip.element.hidden) this.tip.hide();
    else if (this.range.shown) this.range.clear();
    else if (this.selected >= 0) this.select(-1);
    else if (this.canGoBack) this.zoomBack();
    else if (this.state.group === "sandwich") closeSandwich(this);
    else if (this.finder.text) this.tools.search.clear();
    else return false;
    return true;
  }

  zoomBack() {
    this.stage.moveTo(this.zoom.back(this.stage.whole));
    this.drawPlace();
    this.say(this.zoom.top < 0 ? "all" : nameOf(this.view.frames, this.zoom.top));
  }
}
