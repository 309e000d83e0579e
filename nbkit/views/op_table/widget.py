"""OpTable shows the ops of a trace as an interactive table; rows are paged from the kernel, never in its state."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import traitlets

from nbkit import units
from nbkit.trace.job.job import Job
from nbkit.trace.trace import Trace
from nbkit.views.live.widget import LiveWidget, code
from nbkit.views.op_table.node_columns import node_trace
from nbkit.views.op_table.ranks.source import RanksSource
from nbkit.views.op_table.source import OpSource
from nbkit.views.summary.names import shown
from nbkit.views.tables.model import TableModel


class OpTableModel(TableModel):
    """Holds what the op table shows, what is selected in it, and the ops that it is limited to."""

    bundle = "op_table"
    frame = "ops"
    source: OpSource | RanksSource  # type: ignore[assignment]
    source_type = OpSource
    takes_ranks = True
    selected_op_id = traitlets.Int(None, allow_none=True).tag(sync=True)
    within = traitlets.Instance(dict, allow_none=True).tag(sync=True)

    def __init__(self, trace: Trace | pd.DataFrame) -> None:
        self.version = 0
        super().__init__(node_trace(trace) if isinstance(trace, pd.DataFrame) else trace)

    def source_of(self, trace: Trace) -> Any:
        return RanksSource(trace) if isinstance(trace, Job) else OpSource(trace)

    @property
    def row_count(self) -> int:
        return self.source.count if isinstance(self.source, RanksSource) else super().row_count

    @property
    def filtered(self) -> pd.DataFrame:
        """Returns the rows that the table shows now, in its order; of a job the first 100,000, with their rank."""
        return self.source.filtered if isinstance(self.source, RanksSource) else super().filtered

    def show_within(self, label: str, op_ids: npt.NDArray[np.int64]) -> None:
        """Limit the table to these ops, under a label."""
        self.source.limit_to(op_ids)
        self.version += 1
        text = f"{shown(label, 80)} ({units.counted(len(op_ids), 'op')})"
        self.within = {"label": text, "version": self.version}

    def show_all(self) -> None:
        """Show all ops again; other filters stay."""
        self.within = None

    @traitlets.observe("within")
    def _cleared(self, change: Mapping[str, Any]) -> None:
        if change["new"] is None:
            self.source.limit_to(None)


class OpTable(OpTableModel, LiveWidget):
    """The op table as a widget, of a trace, or of the frame of `nbkit.cost_table`, whose nodes are its rows.

    `selected_op_id` is the op that is selected, in Python and in the table alike.

    `within` is the label of the ops that the table is limited to (by `show_within`), and a version that is new for
    each set of them; null is all ops, and the table sets it so when its filters are cleared.
    """

    _esm = code("op_table.js")
    _css = code("op_table.css")
