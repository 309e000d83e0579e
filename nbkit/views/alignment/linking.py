"""Links the alignment table with the graphs of both sides: what is selected in one is selected in the other."""

from collections.abc import Callable
from typing import Any

import numpy as np

from nbkit.views.alignment.graphs import Ids, RowNodes, row_nodes
from nbkit.views.alignment.widget import AlignmentTableModel
from nbkit.views.graph.widget import GraphModel


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
