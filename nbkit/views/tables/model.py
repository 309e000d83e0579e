"""TableModel is the base of the tables' models: rows are paged from the kernel, none is in their state."""

from collections.abc import Mapping
from typing import Any, ClassVar

import pandas as pd
import traitlets

from nbkit.trace.checks import checked_trace
from nbkit.trace.trace import Trace
from nbkit.views.live.model import WidgetModel
from nbkit.views.static_html.static_table import static_table
from nbkit.views.static_html.text import summary
from nbkit.views.tables.source import TableSource


class TableModel(WidgetModel):
    """Holds a table whose questions `source` answers."""

    overview = traitlets.Dict().tag(sync=True)
    source: TableSource
    source_type: ClassVar[type[TableSource]]
    takes_ranks: ClassVar[bool] = False
    frame: ClassVar[str]  # of the trace, whose rows it shows

    def __init__(self, trace: Trace) -> None:
        self.source = self.source_of(checked_trace(trace, of_ranks=self.takes_ranks))
        super().__init__(overview=self.source.overview())

    def source_of(self, trace: Trace) -> Any:
        """Returns what answers the questions about a trace."""
        return self.source_type(trace)

    @property
    def row_count(self) -> int:
        """Returns how many rows the table has."""
        return len(self.source.trace.frames[self.frame])

    @property
    def filtered(self) -> pd.DataFrame:
        """Returns the rows of its frame that the table shows now, in its order; they keep their index.

        If one table is shown in several places, those of the place that was used last; before any is shown, all.
        """
        return self.source.trace.frames[self.frame].iloc[self.source.shown().matched]

    @traitlets.validate("selected_row", "selected_op_id")
    def _known_row(self, proposal: Mapping[str, Any]) -> int | None:
        row: int | None = proposal["value"]
        count = self.row_count
        if row is not None and not 0 <= row < count:
            noun = self.source.noun
            raise traitlets.TraitError(f"There is no {noun} {row}; the {noun}s of this trace are 0 to {count - 1}.")
        return row

    @property
    def groups(self) -> pd.DataFrame | None:
        """Returns one row per group that the table shows now, in its order; null while its rows are in no groups.

        `calls` counts the rows of a group, `min`, `median` and `max` are those of its rows' self times (us); of layers
        those of the layers' sums, and `instances` counts the layers. A text is what all rows have, or how many differ.
        """
        return self.source.groups()

    def static_views(self) -> dict[str, str]:
        """Returns the summary of the trace as text and as HTML."""
        return {"text/plain": summary(self.source.trace), "text/html": static_table(self.source.trace)}

    def answer(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Answers a message of the front end, such as one for rows."""
        return self.source.answer(message)
