"""AlignmentTable shows two executions side by side as an interactive table, whose rows are paged from the kernel."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
import traitlets

from nbkit.trace.checks import checked_trace
from nbkit.trace.trace import Trace
from nbkit.views.alignment.source import AlignmentSource
from nbkit.views.live.widget import LiveWidget, code
from nbkit.views.tables.model import TableModel


class AlignmentTableModel(TableModel):
    """Holds what the alignment table shows, and what is selected in it; its front end is that of the diff table."""

    bundle = "diff_table"
    source: AlignmentSource
    selected_row = traitlets.Int(None, allow_none=True).tag(sync=True)

    def __init__(self, trace: Trace) -> None:
        super().__init__(AlignmentSource(checked_trace(trace)))

    @property
    def filtered(self) -> pd.DataFrame:
        """Returns the pairs that the table shows now, in its order: rows of `trace.alignment` with their index."""
        return self.source.trace.alignment.iloc[self.source.shown().matched]

    @traitlets.validate("selected_row")
    def _known_row(self, proposal: Mapping[str, Any]) -> int | None:
        row: int | None = proposal["value"]
        count = len(self.source.trace.alignment)
        if row is not None and not 0 <= row < count:
            raise traitlets.TraitError(f"There is no row {row}; the rows of this trace are 0 to {count - 1}.")
        return row


class AlignmentTable(AlignmentTableModel, LiveWidget):
    """The results of two executions side by side, with mark, verdict and errors; filters, and the detail of each pair.

    `selected_row` is the place in `trace.alignment` of the row that is selected, in Python and in the table alike.
    """

    _esm = code("diff_table.js")
    _css = code("diff_table.css")
