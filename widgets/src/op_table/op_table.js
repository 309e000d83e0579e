// The op table: the ops of a trace, with module tree and the detail of the selected op.

import { columnsOf } from "../table/columns.js";
import { counted } from "../shared/numbers.js";
import { duration, flops } from "../shared/units.js";
import { OpDetail } from "./detail.js";
import { everything, isFiltered, OWN, predicates, WAYS } from "./query.js";
import { inPlace } from "../live/in_place.js";
import { TableView } from "../table/table_view.js";
import { Tools } from "../table/tools.js";

/** @param {TableView} view */
function tools(view) {
  const phases = view.overview.phases.map((/** @type {any} */ { phase }) => phase);
  return new Tools({
    levels: view.overview.levels, phases, onChange: (change) => view.change(change), onClear: () => view.clear(),
    onToggleTree: () => (view.placing.disconnect(), view.toggleTree(view.tree.element.hidden)),
    // The button goes away: the focus would be nowhere.
    onShowAll: () => (view.showAll(), view.grid.activeCell()?.focus({ preventScroll: true })),
  });
}

/** @param {TableView} view */
function detail(view) {
  return new OpDetail({ onGo: (opId) => view.selection.go(opId), onClose: () => view.selection.close(), onClear: () => view.clear() });
}

/** @param {{model: any, el: HTMLElement}} context */
function render({ model, el }) {
  // Of a step that did not run, and of several ranks, the kernel says which columns there are, and how they are grouped.
  const { n_ops: rowCount, cost, libraries, looks = cost?.looks, ways = cost?.ways } = model.get("overview");
  const [text, what] = cost ? [flops, ""] : [duration, "self time"];
  const total = rowCount.toLocaleString("en");
  const view = new TableView(model, el, {
    name: "nbkit-op-table", label: "Ops", nothing: "No op matches.", all: "All ops", trait: "selected_op_id", key: "op_id", rowCount,
    everything, isFiltered, predicates, tools, detail, columnsOf: (names) => columnsOf(names, looks), natural: "op_id", amount: text, ways: ways ?? { ...WAYS, ...(libraries && OWN) },
    count: ({ matched, amount, groups }, isLimited) => [
      `${isLimited ? `${matched.toLocaleString("en")} of ${total} ops` : `${total} ops`}${groups === null ? "" : ` in ${counted(groups, "group")}`}`, `${text(amount)} ${what}`, `${what} ${text(amount)}`,
    ],
  });
  return () => view.destroy();
}

export default { render: /* @__PURE__ */ inPlace(render) };
