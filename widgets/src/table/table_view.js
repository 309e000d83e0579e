// What the tables have in common: rows paged from the kernel in a grid, a module tree, a detail pane, and their messages.

import { nextSort } from "./columns.js";
import { groupedBy, groupOf, toggled } from "./query/grouping.js";
import { queryOf } from "./query/query.js";
import { Notices } from "./notices.js";
import { createRequests } from "./requests.js";
import { createRowCache, PAGE_ROWS } from "./grid/row_cache.js";
import { visibleRows } from "./grid/scroll.js";
import { debounced, h } from "../shared/dom.js";
import { Grid } from "./grid/grid.js";
import { header } from "../shared/header.js";
import { count, counted } from "../shared/numbers.js";
import { RowSelection } from "./row_selection.js";
import { TableMenu } from "./menu/menu.js";
import { allRows, copied, MOST_COPIED, save, written } from "./menu/take_along.js";
import { TreePane } from "./tree_pane.js";

/** Rows fetched beyond the view, so that scrolling on finds them there. */
const AHEAD = 25;
/** Milliseconds after the rows until the profiles of their columns are asked for. */
const PROFILE_PAUSE = 120;
/** Width from which the module pane is open at first. */
const WIDE = 800;

/**
 * A table of one widget. What it is of: `trait` holds the id of the selected row, which the kernel's questions call
 * `key`; `everything` is the state that shows all, `natural` the column that has the order of the rows, `ways` are how they can be grouped, `predicates` those of the state that only this table has, `tools` the tool line, `detail` the detail pane.
 *
 * @typedef {{name: string, label: string, nothing: string, all: string, trait: string, key: string, rowCount: number,
 *   everything: () => any, isFiltered: (state: any) => boolean, predicates: (state: any) => any[], tools: (view: TableView) => any,
 *   detail: (view: TableView) => any, count: (answer: any, isLimited: boolean) => [string, string, string], amount: (value: number) => string,
 *   searched?: string[], columnsOf: (names: string[]) => any[], natural: string, ways: Record<string, import("./query/grouping.js").Way>}} Kind
 */
export class TableView {
  /** @param {any} model @param {HTMLElement} el @param {Kind} kind */
  constructor(model, el, kind) {
    this.model = model;
    this.kind = kind;
    this.id = `nbkit-${Math.random().toString(36).slice(2, 10)}`;
    /** What is on show: texts of filters and the like. */
    this.overview = model.get("overview");
    /** Whether there is room for what stands beside the rows; null until that is known. @type {boolean | null} */
    this.isWide = null;
    this.state = this.first();
    this.asked = this.ofState();
    this.cache = createRowCache();
    this.notices = new Notices(model);
    this.requests = createRequests((message) => model.send(message), { name: this.id, onWait: () => this.notices.showWaiting() });
    this.profileSoon = debounced(() => this.showProfile(), PROFILE_PAUSE);
    this.isFetching = false;
    this.generation = 0;
    this.tools = kind.tools(this);
    this.menu = new TableMenu({
      ways: kind.ways, onGroup: (name) => this.change(groupedBy(kind.ways, name, kind.natural)), onColumns: (hidden) => this.grid.hide(hidden),
      onCopy: () => this.copy(), onSave: () => this.save(),
    });
    this.tree = new TreePane({ all: kind.all, amount: kind.amount, onChoose: (choice) => this.change(choice) });
    this.grid = this.makeGrid();
    this.detail = kind.detail(this);
    this.selection = new RowSelection(this);
    this.nothing = h("div", { class: "nb-nothing", hidden: true }, kind.nothing);
    this.root = this.page();
    el.append(this.root);
    // Some hosts build the widget before it has a place on the page, or before the page is laid out.
    this.placing = new ResizeObserver(() => this.place(el.clientWidth));
    this.placing.observe(el);
    this.place(el.clientWidth);
    this.receive = (/** @type {any} */ answer) => this.requests.receive(answer);
    this.reselect = () => this.selection.show();
    model.on("msg:custom", this.receive);
    model.on(`change:${kind.trait}`, this.reselect);
    // The kernel limits the rows to what is selected elsewhere, as in a flame graph.
    this.relimit = () => this.refreshAndReveal();
    model.on("change:within", this.relimit);
    this.start();
  }

  async start() {
    await this.refresh();
    if (this.selected !== null) await this.selection.show();
  }

  /** Returns the state that shows everything, in the groups that the trace's verb opens with. */
  first() {
    const { kind, overview: { group = "" } } = this;
    return { ...kind.everything(), ...groupedBy(kind.ways, group, kind.natural) };
  }

  makeGrid() {
    return new Grid({
      id: this.id, label: this.kind.label, columnsOf: this.kind.columnsOf,
      rowAt: (position) => this.cache.get(position), onView: () => this.fetchView(),
      onSort: (column, isAdded) => this.change({ sort: nextSort(this.state.sort, column, isAdded) }),
      onFilter: (name, text) => this.change({ filters: { ...this.state.filters, [name]: text } }),
      onSelect: (id) => this.choose(id), onColumns: () => this.showHead(),
    });
  }

  /** Puts the parts together. */
  page() {
    const { kind, notices } = this;
    const table = h("div", { class: "nb-table" }, this.grid.head.message, this.grid.element, this.nothing);
    this.tools.element.append(this.menu.element);
    const main = h("div", { class: "nb-main" }, this.tree.element, table);
    // Lumino would take arrow keys for the notebook, in its capture phase; this attribute keeps it out.
    const root = h("div", { class: `nbkit nbkit-table ${kind.name}`, "data-lm-suppress-shortcuts": "true" },
      header(this.overview), this.tools.element, notices.problem, notices.waiting, notices.told, main, this.detail.element, notices.status);
    root.style.setProperty("--nb-list-height", `${Math.min(Math.max(kind.rowCount, 6), 16) * 24 + 92}px`);
    return root;
  }

  get selected() {
    return this.model.get(this.kind.trait);
  }

  /** Opens module pane and sliders where there is room for them, until the reader opens or closes the pane. @param {number} width */
  place(width) {
    const isWide = width >= WIDE;
    // A page that is hidden has no width.
    if (isWide === this.isWide || (width === 0 && this.isWide !== null)) return;
    this.isWide = isWide;
    this.tools.place?.(isWide);
    this.toggleTree(isWide);
  }

  /** Opens or closes the module pane, as the reader asked. */
  chooseTree() {
    this.placing.disconnect();
    this.toggleTree(this.tree.element.hidden);
  }

  destroy() {
    this.placing.disconnect();
    this.model.off("msg:custom", this.receive);
    this.model.off(`change:${this.kind.trait}`, this.reselect);
    this.model.off("change:within", this.relimit);
    this.profileSoon.cancel();
    this.requests.close();
    this.tools.destroy();
    this.detail.destroy?.();
    this.grid.destroy();
    this.root.remove();
  }

  /** Returns the query of what is on show, and what is wrong with its filters. */
  ofState() {
    const { query, errors } = queryOf(this.state, (column) => this.kind.columnsOf([column])[0].kind, this.kind.predicates(this.state), this.kind.searched);
    const group = groupOf(this.kind.ways, this.state);
    return { query: group ? { ...query, group } : query, errors };
  }

  /** Asks anew after a change of what is on show. @param {object} change */
  change(change) {
    this.state = { ...this.state, ...change };
    return this.refresh();
  }

  clear() {
    const { sort, group, open } = this.state;
    this.state = { ...this.kind.everything(), sort, group, open };
    this.tree.reset();
    this.grid.head.clearFilters();
    this.showAll();
    return this.refreshAndReveal();
  }

  /** Ends the limit to what is selected elsewhere. */
  showAll() {
    if (!this.within) return;
    this.model.set("within", null);
    this.model.save_changes();
  }

  get within() {
    return this.model.get("within") ?? null;
  }

  get isLimited() {
    return this.kind.isFiltered(this.state) || this.within !== null;
  }

  async refreshAndReveal() {
    await this.refresh();
    if (this.selected !== null) await this.selection.reveal();
  }

  /** Asks for the rows of what is on show; they begin at the top, or where they are for a change that is `inPlace`. */
  async refresh(inPlace = false) {
    this.generation += 1;
    this.root.toggleAttribute("data-busy", true);
    this.notices.tell("");
    this.asked = this.ofState();
    const { query, errors } = this.asked;
    const offset = inPlace ? Math.max(visibleRows(this.grid.top, this.grid.sizes).first - AHEAD, 0) : 0;
    const answer = await this.ask("rows", { kind: "rows", query, offset, limit: PAGE_ROWS });
    if (!answer) return;
    const [first] = this.state.sort;
    this.root.toggleAttribute("data-busy", false);
    this.cache.clear();
    this.cache.add(offset, answer.rows);
    this.grid.isGrouped = this.state.group !== "";
    this.grid.isNested = !this.grid.isGrouped && first.column === this.kind.natural && !first.descending;
    this.grid.largest = answer.largest;
    this.grid.setColumns(answer.columns);
    this.menu.show(this.state.group, this.grid.allColumns);
    this.errors = { ...answer.errors, ...errors };
    this.showHead();
    this.grid.open = new Set(this.state.open);
    this.grid.setRows(answer.listed, inPlace);
    this.tools.show(this.state, this.isLimited, this.within?.label ?? null);
    this.nothing.hidden = answer.matched > 0;
    this.count(answer);
  }

  /** Shows in the head what the rows are sorted and filtered by, and soon what the columns hold. */
  showHead() {
    this.grid.head.show(this.state, this.errors ?? {});
    this.profileSoon.later();
  }

  /** Asks for the profiles of the columns once typing has paused: rows come first. */
  async showProfile() {
    const answer = await this.ask("profile", { kind: "profile", query: this.asked.query });
    if (answer) this.grid.head.showProfile(answer.columns);
  }

  /** @param {any} answer */
  count(answer) {
    const [text, more, spoken] = this.kind.count(answer, this.isLimited);
    this.tools.count.replaceChildren(h("strong", {}, text), ` · ${more}`);
    this.notices.speak(`${text} shown, ${spoken}`);
  }

  /** Fetches the rows in view that are not there yet, one page at a time. */
  async fetchView() {
    if (this.isFetching) return;
    const { first, last } = visibleRows(this.grid.top, this.grid.sizes);
    const end = Math.min(last + AHEAD, this.grid.rowCount - 1);
    const page = last < first ? null : this.cache.missing(Math.max(first - AHEAD, 0), end, this.grid.rowCount);
    if (!page) return;
    const generation = this.generation;
    this.isFetching = true;
    const answer = await this.ask("page", { kind: "rows", query: this.asked.query, ...page });
    this.isFetching = false;
    if (answer && generation === this.generation) {
      this.cache.add(answer.offset, answer.rows);
      this.grid.draw();
    }
    // What went wrong is on show; asking again would only repeat it.
    if (answer) this.fetchView();
  }

  /** Returns all rows that are listed, of groups not those inside, and says how far it is. */
  rowsToTake() {
    const { query } = this.asked;
    const asked = query.group ? { ...query, group: { ...query.group, open: [] } } : query;
    const fetchPage = (/** @type {number} */ offset, /** @type {number} */ limit) => this.ask("take", { kind: "rows", query: asked, offset, limit, is_whole: true });
    return allRows(fetchPage, (done, all) => this.notices.tell(done < all ? `${count(done)} of ${counted(all, "row")} fetched` : ""));
  }

  async copy() {
    if (this.grid.rowCount > MOST_COPIED) return this.notices.tell(`Only up to ${count(MOST_COPIED)} rows are copied; save them as CSV, or filter first.`);
    const table = await this.rowsToTake();
    if (!table) return;
    const isCopied = await copied(written(table, "\t"), this.root);
    this.notices.tell(isCopied ? `${counted(table.rows.length, "row")} copied.` : "The browser does not let the page copy; save the rows as CSV.");
  }

  async save() {
    const table = await this.rowsToTake();
    if (!table) return;
    save(written(table, ","), `${this.kind.name.replace("nbkit-", "").replace("-", "_")}.csv`);
    this.notices.tell(`${counted(table.rows.length, "row")} saved.`);
  }

  /** Returns the answer to a question; null if it was replaced or went wrong, which is then shown. @param {string} topic @param {object} message */
  async ask(topic, message) {
    try {
      const answer = await this.requests.ask(topic, message);
      if (answer) this.notices.showProblem("");
      return answer;
    } catch (error) {
      this.notices.showProblem(/** @type {Error} */ (error).message);
      this.root.toggleAttribute("data-busy", false);
      return null;
    }
  }

  /** Selects a row in the widget, and so in the kernel. @param {number | null} id */
  select(id) {
    this.model.set(this.kind.trait, id);
    this.model.save_changes();
  }

  /** Takes a row that was chosen in the grid: a group opens or closes, a single row is selected. @param {number | null} id */
  choose(id) {
    if (id === null || id >= 0) return this.select(id);
    this.state = { ...this.state, open: toggled(this.state.open, -1 - id) };
    return this.refresh(true);
  }

  /** @param {boolean} isOpen */
  toggleTree(isOpen) {
    this.tree.element.hidden = !isOpen;
    this.tools.showTree(isOpen);
    if (isOpen && !this.tree.nodes.length) this.tree.load((message) => this.ask("modules", message));
  }
}
