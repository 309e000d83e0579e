// The selected range of time: where it is, its sums by op and by module, and what the model knows of it.

import { visible } from "../views/describe.js";
import { rangeSums } from "../data/range_sums.js";
import { counted, duration, share } from "../../shared/units.js";
import { h } from "../../shared/dom.js";

/** Lines of a table that are shown; the rest is one line. */
const MOST = 50;
const CUT = "A call that an edge of the range cuts counts with the part of its self time inside.";
const SIDE_BY_SIDE = "Threads and streams run side by side: together their shares may be more than 100 %.";

/** @typedef {import("../data/range_sums.js").Range} Range */

export class TimeRange {
  /** @param {any} view the flame graph that it belongs to @param {import("../data/data.js").Trace | null} trace */
  constructor(view, trace) {
    this.view = view;
    this.trace = trace;
    /** @type {Range | null} */
    this.range = null;
    /** What it has. @type {import("../data/range_sums.js").RangeSums | null} */
    this.sums = null;
    /** The range that the model has from here. @type {Range | null} */
    this.told = null;
    this.isTelling = false;
    /** Frame that the keys extend the range from, -1 for none. */
    this.anchor = -1;
    this.hasDevices = trace?.tracks.some(({ kind }) => kind === "device") ?? false;
    this.title = h("h3", {});
    this.note = h("p", { class: "nb-muted" });
    this.tables = h("div", { class: "nb-range-tables", "data-devices": this.hasDevices });
    const zoom = h("button", { type: "button", title: "Zoom to the range (z)", onclick: () => this.zoom() }, "Zoom to range");
    const close = h("button", { type: "button", class: "nb-close", "aria-label": "Clear the range", title: "Clear (Esc)", onclick: () => (this.clear(), view.stage.element.focus()) }, "×");
    this.element = h("section", { class: "nb-flame-range", "aria-label": "Selected range", hidden: true },
      h("div", { class: "nb-detail-head" }, this.title, zoom, close), this.tables, this.note);
  }

  /** The range as far as the view has a time axis. */
  get shown() {
    return this.view.view.isTimeline ? this.range : null;
  }

  /** Follows a drag; the sums come at its end. @param {Range} range @param {boolean} isDone */
  drag(range, isDone) {
    this.anchor = -1;
    this.set(range, isDone);
    if (isDone) this.view.say(this.title.textContent);
  }

  /** Takes the range from the frame where the keys began to another one. @param {number} frame */
  extend(frame) {
    const { view } = this;
    if (this.anchor < 0) this.anchor = view.focus < 0 ? frame : view.focus;
    const { left } = view.view.layout;
    const { width } = view.view.frames;
    const ends = [this.anchor, frame].map((at) => [left[at], left[at] + width[at]]);
    view.tip.hide();
    view.focusOn(frame, false);
    this.set({ from: Math.min(ends[0][0], ends[1][0]), to: Math.max(ends[0][1], ends[1][1]) }, true);
    view.say(`${this.title.textContent}; ${view.stage.item.textContent}`);
  }

  /** @param {Range} range @param {boolean} hasSums */
  set(range, hasSums) {
    // Nothing is shorter than what the axis can show.
    const least = 1e-9 * Math.max(Math.abs(range.to), 1);
    this.range = { from: range.from, to: Math.max(range.to, range.from + least) };
    if (hasSums) {
      this.show();
      this.tell();
    }
    this.view.draw();
  }

  clear() {
    if (!this.range) return;
    this.range = null;
    this.anchor = -1;
    this.show();
    this.tell();
    this.view.draw();
    this.view.say("range cleared");
  }

  /** Zooms to the range; without one nothing happens. */
  zoom() {
    const { shown, view } = this;
    if (!shown) return false;
    view.zoom.note(view.stage.goal);
    view.stage.moveTo(shown);
    view.drawPlace();
    return true;
  }

  /** Tells the model which calls the range has, once that is another one, or that none is shown any more. */
  tell() {
    const { shown, sums, view: { model } } = this;
    if (shown === this.told) return;
    this.told = shown;
    this.isTelling = true;
    model.set("selected_range", shown && sums && {
      label: `range ${duration(shown.from)} to ${duration(shown.to)}`, from_us: shown.from, to_us: shown.to, ids: new DataView(sums.rows.buffer),
    });
    this.isTelling = false;
    model.save_changes();
  }

  /** Takes over the range of the model: that of another view, or none once a table shows all ops again. */
  adopt() {
    const known = this.view.model.get("selected_range") ?? null;
    const { range } = this;
    if (this.isTelling || (known?.from_us === range?.from && known?.to_us === range?.to)) return;
    this.range = known && { from: known.from_us, to: known.to_us };
    this.anchor = -1;
    this.told = this.shown;
    this.show();
    this.view.draw();
  }

  /** Shows the sums of the range, or hides them where there is none. */
  show() {
    const { shown, trace, hasDevices } = this;
    this.element.hidden = !shown;
    this.sums = shown && trace && rangeSums(trace, shown);
    if (!shown || !this.sums) return;
    const { sums } = this;
    const extent = shown.to - shown.from;
    const { whole } = this.view.view;
    const calls = `${counted(sums.count, "call")}${sums.cut ? `, ${sums.cut.toLocaleString("en")} cut by an edge` : ""}`;
    this.title.textContent = `Range of ${duration(extent)}, ${share(extent / whole.time)} of ${whole.name}`;
    const texts = [`From ${duration(shown.from)} to ${duration(shown.to)}: ${calls}. Shares are of the range.`, CUT, ...(trace && trace.tracks.length > 1 ? [SIDE_BY_SIDE] : [])];
    this.note.textContent = texts.join(" ");
    this.tables.replaceChildren(
      table("op", sums.byOp, extent, hasDevices),
      table("module", sums.byModule, extent, hasDevices),
    );
  }
}

/** @param {string} by @param {import("../data/range_sums.js").RangeLine[]} lines @param {number} extent of the range @param {boolean} hasDevices */
function table(by, lines, extent, hasDevices) {
  const host = ["calls", "self time", "share"];
  const device = hasDevices ? ["device calls", "device time", "share"] : [];
  const head = h("tr", {}, h("th", { scope: "col" }, by), ...[...host, ...device].map((label) => h("th", { scope: "col", class: "nb-number" }, label)));
  const [shown, rest] = [lines.slice(0, MOST), lines.slice(MOST)];
  const body = shown.map((line) => row(line, extent, hasDevices));
  if (rest.length) body.push(row(sumOf(rest), extent, hasDevices));
  return h("div", { class: "nb-range-table", tabindex: "0", role: "region", "aria-label": `Range by ${by}` },
    h("table", {}, h("thead", {}, head), h("tbody", {}, ...body)));
}

/** @param {import("../data/range_sums.js").RangeLine[]} lines */
function sumOf(lines) {
  const all = { name: counted(lines.length, "other"), count: 0, self: 0, deviceCount: 0, deviceSelf: 0 };
  for (const line of lines) {
    all.count += line.count;
    all.self += line.self;
    all.deviceCount += line.deviceCount;
    all.deviceSelf += line.deviceSelf;
  }
  return all;
}

/** @param {import("../data/range_sums.js").RangeLine} line @param {number} extent @param {boolean} hasDevices */
function row({ name, count, self, deviceCount, deviceSelf }, extent, hasDevices) {
  const figures = (/** @type {number} */ calls, /** @type {number} */ time) =>
    (calls ? [calls.toLocaleString("en"), duration(time), share(time / extent)] : ["—", "—", "—"]);
  const texts = [...figures(count, self), ...(hasDevices ? figures(deviceCount, deviceSelf) : [])];
  return h("tr", {}, h("th", { scope: "row", title: name }, visible(name)), ...texts.map((text) => h("td", { class: "nb-number" }, text)));
}
