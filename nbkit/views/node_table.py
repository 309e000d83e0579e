"""Says what summary and report show of the nodes of a model: the frame of `cost_table`."""

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from nbkit import units
from nbkit.schema import NODE_COSTS
from nbkit.trace.trace import Trace
from nbkit.views.op_table.report_data import op_data
from nbkit.views.ops_view import OPS_VIEW
from nbkit.views.panels.panel import Contents, Panel
from nbkit.views.sections.section import Section, columns
from nbkit.views.sections.writers import to_html
from nbkit.views.statements.cost import node_statements
from nbkit.views.static_html.view import no_outcome

# Of each column: its name in the table, label and kind.
COLUMNS = {
    "op_kind": "kind",
    "name": "node",
    "output": "output",
    "forward_flops": "forward: flops",
    "backward_flops": "backward: flops",
    "accumulate_bytes": "accumulate: bytes",
    "incremental_bytes": "incremental: bytes",
    "output_bytes": "output size: bytes",
    "temp_bytes": "temp: bytes",
    "param_bytes": "parameters: bytes",
    "backward_bytes": "inputs: bytes",
    "device": "device",
}
FEW = ("name", "output", "forward_flops", "backward_flops", "incremental_bytes", "accumulate_bytes")
# A report has all nodes of most models as a table, too, for pages without scripts and for paper.
PRINTED = 400


def node_sections(trace: Trace, count: int) -> list[Section]:
    """Returns the nodes that save most for the backward pass, and those of most FLOPs."""
    table = _described(trace)
    total = table["forward_flops"].fillna(0) + table["backward_flops"].fillna(0)
    by = {"Nodes that save most for the backward pass": table["incremental_bytes"], "Nodes of most FLOPs": total}
    return [
        _section(title, table.loc[amount[amount > 0].sort_values(ascending=False, kind="stable").index[:count]], FEW)
        for title, amount in by.items()
        if (amount > 0).any()
    ]


def _described(trace: Trace) -> pd.DataFrame:
    table = NODE_COSTS.check(trace.frames["node_costs"])
    return table.assign(output=table["dtype"] + " " + table["shape"])


def _section(title: str, table: pd.DataFrame, names: Sequence[str] = (*COLUMNS,)) -> Section:
    rows = [list(row) for row in table[[*names]].itertuples(name=None)]
    return Section(title, columns(", ".join(["#: id", *(COLUMNS[name] for name in names)])), rows)


def first_nodes(trace: Trace, count: int) -> str:
    """Returns an HTML table of the first nodes."""
    table = _described(trace)
    title = "Nodes" if len(table) <= count else f"First {units.counted(count, 'node')} of {len(table):,}"
    return to_html([_section(title, table.head(count))])


def _panels(contents: Contents) -> list[Panel]:
    static = f'<div class="nbkit-static">{first_nodes(contents.trace, PRINTED)}</div>'
    return [Panel("op_table", "Nodes", op_data(contents.trace), static)]


NODES_VIEW = replace(
    OPS_VIEW,
    sections=node_sections,
    charts=lambda trace: [],
    calls=first_nodes,
    panels=_panels,
    totals=no_outcome,
    nothing="The model has no node.",
    statements=node_statements,
)
