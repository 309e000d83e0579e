// The view of a graph: wires the model of the graph, tools, picture, outline, details and what is selected together.

import { waysOf } from "./model/colors.js";
import { textAt } from "./data/data.js";
import { announcement } from "./model/describe.js";
import { GraphModel } from "./model/model.js";
import { foldAround, ROOT } from "./data/hierarchy.js";
import { HEAD } from "./layout/scene.js";
import { nextMatch } from "./data/search.js";
import { counted } from "../shared/units.js";
import { watchTheme } from "../shared/theme.js";
import { LETTER } from "./canvas/painter.js";
import { download, fileName, pngOf, svgOf } from "./canvas/export.js";
import { parts } from "./controls/parts.js";

/** Width from which on the outline stands beside the picture without being asked for. */
const WIDE = 640;
/** What is shown around a counterpart, which nobody has looked for. */
const AROUND = 100;

export class GraphView {
  /**
   * @param {Pick<import("./data/selection.js").SharedSelection, "tell" | "news">} shared what is selected, here and elsewhere
   * @param {HTMLElement} el @param {import("./data/data.js").Data} data
   */
  constructor(shared, el, data) {
    this.shared = shared;
    this.data = data;
    /** @type {Map<string, GraphModel>} */
    this.models = new Map();
    this.focus = this.selected = this.hover = -1;
    this.text = "";
    this.state = { graph: data.graphs[0] ?? "", color: waysOf(data)[0][0], hasValues: false, isOutline: el.clientWidth >= WIDE, isHelp: false };
    const made = parts(this, data);
    this.stage = made.stage;
    this.tools = made.tools;
    this.outline = made.outline;
    this.tip = made.tip;
    this.legend = made.legend;
    this.help = made.help;
    this.detail = made.detail;
    this.status = made.status;
    this.notice = made.notice;
    this.root = made.root;
    el.append(this.root);
    this.unwatch = watchTheme(this.root, () => this.stage.draw());
    if (!data.nodes.count) return;
    this.show();
    this.openWhole();
    this.stage.draw();
    this.selectFromOutside();
  }

  destroy() {
    this.unwatch();
    this.tools.destroy();
    this.outline.destroy();
    this.stage.destroy();
    this.root.remove();
  }

  get model() {
    const { graph, hasValues } = this.state;
    const key = `${graph}\n${hasValues}`;
    if (!this.models.has(key)) this.models.set(key, new GraphModel(this.data, graph, hasValues, LETTER));
    return /** @type {GraphModel} */ (this.models.get(key));
  }

  /** @param {object} change */
  change(change) {
    const [before, node, part] = [this.model, this.model.nodeOf(this.selected), this.model.partOf(this.selected)];
    Object.assign(this.state, change);
    if (this.model === before) return this.show();
    this.focus = this.hover = -1;
    this.selected = node !== null ? this.model.tree.ofNode[node] : part !== null ? this.model.tree.ofPart[part] : -1;
    this.show();
    this.search(this.text);
    this.openWhole();
    this.mark(this.selected);
    this.say(`${this.state.graph}, ${counted(this.model.tree.size[0], "node")}`);
  }

  /** Draws everything after a change of the state, or of what is open. */
  show() {
    const { data, model, state } = this;
    this.tools.show(state);
    this.help.hidden = !state.isHelp;
    this.outline.element.hidden = !state.isOutline;
    const note = model.tree.hidden ? `${counted(model.tree.hidden, "parameter")} or constants not shown` : "";
    this.legend.show(this.marks.colors, note);
    if (state.isOutline) this.outline.show(data, model.tree, model.scene.open, this.marks);
    this.draw();
  }

  /** Shows what the graph of the same nodes before showed, which had other colors. @param {GraphView} before */
  takeOver(before) {
    const tables = /** @type {const} */ (["nodes", "parts", "edges"]);
    if (!this.data.nodes.count || tables.some((name) => this.data[name].count !== before.data[name].count)) return;
    const { graph, hasValues, isOutline } = before.state;
    Object.assign(this.state, { graph, hasValues, isOutline });
    this.model.reopen(before.model.scene.open);
    this.show();
    this.stage.setCamera(before.stage.goal);
    this.mark(before.selected);
  }

  /** Shows the picture from its start, no more of it open than fits. */
  openWhole() {
    const { model, stage } = this;
    const { size } = model.scene.open;
    if (stage.view.width) model.openToFit(stage.view);
    if (model.scene.open.size !== size) this.show();
    stage.openWhole();
    const repeats = model.repeatsIn(ROOT);
    if (stage.view.width && repeats >= 0 && model.scene.isShown(repeats)) this.frame(repeats, AROUND);
  }

  get marks() {
    return { focus: this.focus, selected: this.selected, hover: this.hover, colors: this.model.colors(this.state.color), noteOf: (/** @type {number} */ item) => this.model.noteOf(item, this.state.color) };
  }

  draw() {
    const { model } = this;
    const drawn = model.scene.drawn();
    const matches = new Set(this.text ? model.search(this.text).map((item) => model.scene.shownFor(item)) : []);
    const far = this.selected < 0 ? [] : model.far(model.scene.shownFor(this.selected));
    this.stage.setLook({ drawn, ...this.marks, matches, far, labelOf: (/** @type {any} */ line) => model.labelOf(line) });
  }

  /** @param {number} item */
  boxOf(item) {
    const { scene } = this.model;
    return /** @type {import("./layout/scene.js").Box} */ (scene.drawn().boxOf.get(scene.shownFor(item)));
  }

  /** Follows the camera whenever it moved. */
  moved() {
    if (!this.tip.isOfFocus || this.focus < 0) this.tip.hide();
    else this.tip.place(this.stage.pointOf(this.boxOf(this.focus)), this.stage.element);
  }

  /** Opens or closes an item, whose head stays where it is in view. @param {number} item @param {boolean} isOpen */
  toggle(item, isOpen) {
    if (!this.model.scene.holds(item)) return;
    const before = this.boxOf(item);
    this.model.scene.toggle([item], isOpen);
    if (this.focus >= 0) this.focus = this.model.scene.shownFor(this.focus);
    this.show();
    this.tip.hide();
    this.stage.follow(before, this.boxOf(item));
    this.say(announcement(this.data, this.model.tree, item, isOpen, this.model.edges));
  }

  /** @param {string} text */
  search(text) {
    this.text = text.trim();
    const matches = this.text ? this.model.search(this.text) : [];
    const words = !this.text ? "" : matches.length ? counted(matches.length, "match") : "no match";
    this.tools.search.showMatches(words, matches.length > 0);
    if (words) this.say(words);
    this.draw();
  }

  /** Goes to the next or previous match, which is opened to. @param {number} step */
  step(step) {
    const matches = this.text ? this.model.search(this.text) : [];
    const to = nextMatch(matches, this.focus, step, this.model.tree);
    if (to < 0) return;
    this.look(to);
    this.tools.search.showMatches(`${matches.indexOf(to) + 1} of ${counted(matches.length, "match")}`, true);
  }

  /** Opens what holds an item, and puts the focus on it. @param {number} item */
  look(item) {
    this.open(item);
    this.focusOn(item, false);
  }

  /** Opens what holds an item. @param {number} item */
  open(item) {
    if (this.model.scene.isShown(item)) return;
    this.model.reveal(item);
    this.show();
  }

  /** Brings an item into view, of an open one its head. @param {number} item @param {number} [around] pixels of the picture beside it */
  frame(item, around = 0) {
    const box = this.boxOf(item);
    this.stage.reveal(box.isOpen ? { ...box, height: HEAD } : box, around);
  }

  /** Puts the keyboard's focus on a box, shows and says what it is. @param {number} item @param {boolean} [hasTip] */
  focusOn(item, hasTip = true) {
    if (item < 0) return;
    this.focus = item;
    this.frame(item);
    this.draw();
    this.outline.mark(this.marks);
    const { tree, scene, edges } = this.model;
    this.say(announcement(this.data, tree, item, scene.open.has(item), edges));
    if (hasTip) this.tell(item, true, this.stage.pointOf(this.boxOf(item)));
  }

  /** Shows a tip. @param {number} item @param {boolean} isOfFocus @param {{x: number, y: number}} point */
  tell(item, isOfFocus, point) {
    const { title, fields } = this.model.details(item);
    this.tip.show(title, fields.filter(([label]) => label !== "node" && label !== "part").slice(0, 9), isOfFocus);
    this.tip.place(point, this.stage.element);
  }

  /** Shows and selects what corresponds to an item of another graph, without telling so; gives its item, -1 for none. @param {import("./data/correspondence.js").Counterpart} counterpart */
  showCounterpart({ table, rows, isGroup }) {
    const item = this.showRow(table, rows[0]);
    if (item < 0) return -1;
    this.focus = isGroup ? foldAround(this.model.tree, item) : item;
    this.open(this.focus);
    this.frame(this.focus, AROUND);
    this.mark(this.focus);
    return this.focus;
  }

  /** @param {string} text */
  say(text) {
    this.status.textContent = text;
  }

  /** Saves the whole picture as a file, without what only the pointer and the keyboard mark. @param {"svg" | "png"} type */
  async save(type) {
    const { data, stage } = this;
    const look = { .../** @type {import("./canvas/painter.js").Look} */ (stage.look), hover: -1, focus: -1 };
    const title = data.graphs.length > 1 ? `${data.title}, ${this.state.graph}` : data.title;
    const made = type === "svg" ? svgOf(look, stage.theme, title) : await pngOf(look, stage.theme, title);
    const name = fileName([data.name, ...(data.graphs.length > 1 ? [this.state.graph] : [])], type);
    const problem = typeof made === "string" ? made : "";
    if (typeof made !== "string") download(made, name);
    this.notice.textContent = problem;
    this.notice.hidden = !problem;
    this.say(problem || `${name} saved`);
  }

  /** Follows the pointer onto a box, or onto none. @param {number} item @param {{x: number, y: number}} point */
  point(item, point) {
    if (item !== this.hover) {
      this.hover = item;
      this.draw();
    }
    if (item >= 0 && !this.model.scene.open.has(item)) this.tell(item, false, point);
    else this.tip.hide();
  }

  /** Selects an item and tells the widget's model; -1 is none. @param {number} item @param {boolean} [isAsked] whether another widget did */
  select(item, isAsked = false) {
    this.mark(item);
    this.shared.tell(this.model, item, isAsked);
  }

  /** Shows an item as the selected one. @param {number} item */
  mark(item) {
    this.selected = item;
    this.tip.hide();
    if (item < 0) this.detail.hide();
    else this.detail.show(this.model.details(item));
    this.outline.mark(this.marks);
    this.draw();
  }

  /** Opens what holds an item, focuses and selects it. @param {number} item */
  goTo(item) {
    this.look(item);
    this.select(item);
  }

  /** Goes to a node, also of another graph, or one that is hidden as a parameter. @param {number} node */
  goToNode(node) {
    this.goTo(this.showRow("nodes", node));
  }

  /** Returns the item of a row, whose graph is shown, with the parameters if it is one; -1 if there is none. @param {"nodes" | "parts"} table @param {number} row */
  showRow(table, row) {
    const graph = textAt(this.data[table].texts.graph, row) ?? "";
    if (graph !== this.state.graph) this.change({ graph });
    if (table === "nodes" && this.model.tree.ofNode[row] < 0) this.change({ hasValues: true });
    return this.model.tree[table === "nodes" ? "ofNode" : "ofPart"][row];
  }

  /** Reveals what Python or another widget has selected. */
  selectFromOutside() {
    const asked = this.data.nodes.count ? this.shared.news(this.data) : undefined;
    if (asked !== undefined) this.selectAsked(asked);
  }

  /** Selects a row and tells so; null selects nothing. @param {import("./data/selection.js").Asked | null} asked */
  selectAsked(asked) {
    const item = asked ? this.showRow(asked.table, asked.row) : -1;
    if (item < 0) return this.mark(-1);
    this.look(item);
    this.select(item, asked?.isOp);
  }
}
