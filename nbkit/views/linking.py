"""Links widgets or their models: a selected frame or range filters an op table, a selected op is selected in both."""

from collections.abc import Callable
from typing import Any

import numpy as np
import traitlets

from nbkit.analysis.query.diff_table import worst_first
from nbkit.errors import OptionError
from nbkit.views.alignment.graphs import RowNodes, row_nodes
from nbkit.views.alignment.widget import AlignmentTableModel
from nbkit.views.diff_table.widget import DiffTableModel
from nbkit.views.flamegraph.widget import FlameGraphModel
from nbkit.views.graph.widget import GraphModel
from nbkit.views.live.pieces import Ids
from nbkit.views.op_table.widget import OpTableModel

# What of a flame graph filters an op table.
SELECTED = ["selection", "selected_range"]


def link(flame: FlameGraphModel, table: OpTableModel) -> Callable[[], None]:
    """Link both ways; calling what comes back ends it. Raises OptionError if they do not show the same ops.

    Selecting a frame shows only the ops inside it in the table, with the work on devices that they launched; selecting
    a range of time those with a part in it; of both, the one that was selected last. Clearing the table's filters, or
    what is selected, shows all of them again.
    """
    n_ops = len(table.source.trace.ops)
    if flame.flame["count"] != n_ops:
        raise OptionError(
            f"The flame graph shows {flame.flame['count']} ops and the table {n_ops}; make both from one trace."
        )

    def show_selected(change: dict[str, Any]) -> None:
        frame, span = flame.selection, flame.selected_range
        if span is not None and (frame is None or change["name"] == "selected_range"):
            # The calls on devices that ran in it are among them.
            table.show_within(str(span["label"]), flame.known_ids(span))
        elif frame is not None:
            table.show_within(str(frame["label"]), _with_kernels(table, flame.known_ids(frame)))
        else:
            table.show_all()

    def clear_selection(change: dict[str, Any]) -> None:
        if change["new"] is None:
            # Both at once: the table would show the ops of the other one for a moment.
            with flame.hold_trait_notifications():
                flame.selection = flame.selected_range = None

    ops = traitlets.link((flame, "selected_op_id"), (table, "selected_op_id"))
    flame.observe(show_selected, SELECTED)
    table.observe(clear_selection, "within")
    show_selected({"name": "selection"})

    def unlink() -> None:
        ops.unlink()
        flame.unobserve(show_selected, SELECTED)
        table.unobserve(clear_selection, "within")

    return unlink


def link_graph(graph: GraphModel, ops_widget: OpTableModel | FlameGraphModel) -> Callable[[], None]:
    """Link both ways; calling what comes back ends it.

    A selected node selects the op that it stands for; a selected part shows only its ops in an op table. Of a graph
    that was not recorded with these ops, those of the same module are its ops.
    """
    ops = traitlets.link((graph, "selected_op_id"), (ops_widget, "selected_op_id"))
    if not isinstance(ops_widget, OpTableModel):
        return ops.unlink
    table: OpTableModel = ops_widget

    def show_selected(change: dict[str, Any]) -> None:
        if graph.selection is None or (ids := _ops_of(graph, table)) is None:
            table.show_all()
        else:
            table.show_within(str(graph.selection["label"]), _with_kernels(table, ids))

    graph.observe(show_selected, "selection")
    show_selected({})

    def unlink() -> None:
        ops.unlink()
        graph.unobserve(show_selected, "selection")

    return unlink


def _ops_of(graph: GraphModel, table: OpTableModel) -> Ids | None:
    """Returns the ops of what is selected, by their ids, else by its module; null where neither tells."""
    ids, module = graph.selected_ids(), (graph.selection or {}).get("module")
    if ids is not None and len(ids):
        return ids
    if module is None:
        return None
    modules = table.source.trace.ops["module"]
    is_inside = (modules == module) | modules.str.startswith(f"{module}.", na=False) if module else modules.notna()
    return np.flatnonzero(is_inside.to_numpy(bool))


def link_differences(differences: DiffTableModel, table: OpTableModel) -> Callable[[], None]:
    """Link both ways; calling what comes back ends it. Raises OptionError if they do not show the same ops.

    A selected difference selects its op; a selected op its first difference, the worst one, or none.
    """
    diffs, ops = differences.source.trace.diffs, table.source.trace.ops
    if len(ops) != len(differences.source.trace.ops):
        raise OptionError(
            f"The diff table shows {len(differences.source.trace.ops)} ops and the op table {len(ops)}; make both from "
            f"one trace."
        )
    op_of_row = diffs["op_id"].tolist()
    row_of_op = {op_of_row[row]: int(row) for row in reversed(worst_first(diffs).tolist())}

    def select_op(change: dict[str, Any]) -> None:
        if change["new"] is not None:
            table.selected_op_id = op_of_row[change["new"]]

    def select_row(change: dict[str, Any]) -> None:
        row = differences.selected_row
        if row is None or op_of_row[row] != change["new"]:
            differences.selected_row = row_of_op.get(change["new"])

    differences.observe(select_op, "selected_row")
    table.observe(select_row, "selected_op_id")

    def unlink() -> None:
        differences.unobserve(select_op, "selected_row")
        table.unobserve(select_row, "selected_op_id")

    return unlink


def _with_kernels(table: OpTableModel, ids: Ids) -> Ids:
    """Returns the ops and the work on devices that they launched, which has frames on tracks of its own."""
    ops = table.source.trace.ops
    is_launched = (ops["level"] == "kernel") & ops["parent_id"].isin(ids)
    return np.union1d(ids, np.flatnonzero(is_launched))


def link_alignment(table: AlignmentTableModel, graph: GraphModel) -> Callable[[], None]:
    """Link both ways; calling what comes back ends it.

    A selected row selects its node, of a pair that of the left side, whose counterpart the graphs show; a selected node
    selects its row.
    """
    known = row_nodes(table.source.trace)
    nodes, rows = node_of_rows(known), _rows_of_nodes(known)

    def select_node(change: dict[str, Any]) -> None:
        row = change["new"]
        if row is not None and nodes[row] >= 0 and rows.get(graph.selected_node_id) != row:
            graph.selected_node_id = int(nodes[row])

    def select_row(change: dict[str, Any]) -> None:
        row = rows.get(change["new"])
        if row is not None:
            table.selected_row = row

    table.observe(select_node, "selected_row")
    graph.observe(select_row, "selected_node_id")

    def unlink() -> None:
        table.unobserve(select_node, "selected_row")
        graph.unobserve(select_row, "selected_node_id")

    return unlink


def node_of_rows(known: RowNodes) -> Ids:
    """Returns the node that a row selects: that of the left side, else that of the right one; -1 for none."""
    return np.where(known.left >= 0, known.left, known.right)


def _rows_of_nodes(known: RowNodes) -> dict[int | None, int]:
    """Returns the row of each node; of several the first."""
    found: dict[int | None, int] = {}
    for ids in (known.left, known.right):
        for row in np.flatnonzero(ids >= 0).tolist():
            found.setdefault(int(ids[row]), row)
    return found
