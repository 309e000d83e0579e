// The diff table: compared tensors, the worst first, with the detail of the selected one.

import { diffColumnsOf } from "../table/columns.js";
import { everything, isFiltered, predicates, WAYS } from "./query.js";
import { DiffDetail } from "./detail.js";
import { DiffTools } from "./tools.js";
import { count, counted } from "../shared/numbers.js";
import { TableView } from "../table/table_view.js";

/** @param {TableView} view */
function tools(view) {
  const { choices, labels, scales } = view.overview;
  return new DiffTools({
    choices, labels, scales, query: () => view.state, onChange: (change) => view.change(change), onClear: () => view.clear(),
    onToggleTree: () => view.toggleTree(view.tree.element.hidden),
  });
}

/** @param {TableView} view */
function detail(view) {
  return new DiffDetail({ ask: (topic, message) => view.ask(topic, message), onClose: () => view.selection.close(), onClear: () => view.clear() });
}

/** @param {{model: any, el: HTMLElement}} context */
function render({ model, el }) {
  const { n_rows: rowCount, numbers, harmless, figures } = model.get("overview");
  const isNumber = new Set(numbers);
  const total = rowCount.toLocaleString("en");
  const bad = figures.some((/** @type {[string, string]} */ [status]) => status === "failed") ? "mismatched or failed" : "mismatched";
  const view = new TableView(model, el, {
    name: "nbkit-diff-table", label: "Differences", nothing: "No compared tensor matches.", all: "All tensors", trait: "selected_row", key: "row", rowCount,
    everything, isFiltered, predicates: (state) => predicates(state, harmless), tools, detail,
    columnsOf: (names) => diffColumnsOf(names, isNumber), natural: "rank", ways: WAYS, amount: (value) => (value ? `≠ ${count(value)}` : ""),
    count: ({ matched, amount, groups }, isLimited) => {
      const all = isLimited ? `${matched.toLocaleString("en")} of ${total} tensors` : `${total} tensors`;
      const text = groups === null ? all : `${all} in ${counted(groups, "group")}`;
      return [text, `${count(amount)} ${bad}`, `${count(amount)} of them ${bad}`];
    },
  });
  return () => view.destroy();
}

export default { render };
