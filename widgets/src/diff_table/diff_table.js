// The diff table: compared tensors, the worst first, with the detail of the selected one; and other tables of pairs.

import { diffColumnsOf } from "../table/columns.js";
import { everything, isFiltered, predicates, WAYS } from "./query.js";
import { DiffDetail } from "./detail.js";
import { DiffTools } from "./tools.js";
import { count, counted } from "../shared/numbers.js";
import { inPlace } from "../live/in_place.js";
import { TableView } from "../table/table_view.js";

/** What a table of differences says; the kernel says it of a table of something else. */
const WORDS = {
  label: "Differences", nothing: "No compared tensor matches.", all: "All tensors", noun: "tensor", wrong: "mismatched",
  search: "Search op, module, source", selected: "Selected difference",
};

/** @param {TableView} view */
function tools(view) {
  const { choices, labels, scales, first = null, words = WORDS } = view.overview;
  return new DiffTools({
    choices, labels, scales, first, search: words.search, query: () => view.state, onChange: (change) => view.change(change), onClear: () => view.clear(),
    onToggleTree: () => view.chooseTree(), onGo: (row) => view.selection.go(row),
  });
}

/** @param {TableView} view */
function detail(view) {
  const { words = WORDS, looks } = view.overview;
  return new DiffDetail({ label: words.selected, looks, ask: (topic, message) => view.ask(topic, message), onClose: () => view.selection.close(), onClear: () => view.clear() });
}

/** @param {{model: any, el: HTMLElement}} context */
function render({ model, el }) {
  const { n_rows: rowCount, numbers, harmless, figures, words = WORDS, looks, ways = WAYS, natural = "rank", searched } = model.get("overview");
  const isNumber = new Set(numbers);
  const total = counted(rowCount, words.noun);
  const bad = figures.some((/** @type {[string, string]} */ [status]) => status === "failed") ? `${words.wrong} or failed` : words.wrong;
  const view = new TableView(model, el, {
    name: "nbkit-diff-table", label: words.label, nothing: words.nothing, all: words.all, trait: "selected_row", key: "row", rowCount,
    everything: () => everything(natural), isFiltered, predicates: (state) => predicates(state, harmless), tools, detail, searched,
    columnsOf: (names) => diffColumnsOf(names, isNumber, looks), natural, ways, amount: (value) => (value ? `≠ ${count(value)}` : ""),
    count: ({ matched, amount, groups }, isLimited) => {
      const all = isLimited ? `${matched.toLocaleString("en")} of ${total}` : total;
      const text = groups === null ? all : `${all} in ${counted(groups, "group")}`;
      return [text, `${count(amount)} ${bad}`, `${count(amount)} of them ${bad}`];
    },
  });
  return () => view.destroy();
}

export default { render: /* @__PURE__ */ inPlace(render) };
