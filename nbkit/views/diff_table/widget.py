"""DiffTable shows what opdiff compared as an interactive table, whose rows are paged from the kernel."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
import traitlets

from nbkit.trace.checks import checked_trace
from nbkit.trace.trace import Trace
from nbkit.views.diff_table.source import DiffSource
from nbkit.views.live.widget import LiveWidget, code
from nbkit.views.tables.model import TableModel


class DiffTableModel(TableModel):
    """Holds what the diff table shows, and what is selected in it."""

    bundle = "diff_table"
    source: DiffSource
    selected_row = traitlets.Int(None, allow_none=True).tag(sync=True)

    def __init__(self, trace: Trace) -> None:
        super().__init__(DiffSource(checked_trace(trace)))

    @property
    def filtered(self) -> pd.DataFrame:
        """Returns the compared tensors that the table shows now, in its order: rows of `trace.diffs` with their index.

        If one table is shown in several places, those of the place that was used last;
        before any is shown, all rows, the worst first.
        """
        return self.source.trace.diffs.iloc[self.source.shown().matched]

    @traitlets.validate("selected_row")
    def _known_row(self, proposal: Mapping[str, Any]) -> int | None:
        row: int | None = proposal["value"]
        n_rows = len(self.source.trace.diffs)
        if row is not None and not 0 <= row < n_rows:
            raise traitlets.TraitError(f"There is no row {row}; the rows of this trace are 0 to {n_rows - 1}.")
        return row


class DiffTable(DiffTableModel, LiveWidget):
    """The compared tensors of an opdiff trace, the worst first; filters, thresholds, and the detail of each.

    `selected_row` is the place in `trace.diffs` of the row that is selected, in Python and in the table alike.
    """

    _esm = code("diff_table.js")
    _css = code("diff_table.css")
