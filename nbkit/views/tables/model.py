"""TableModel is the base of the tables' models: rows are paged from the kernel, none is in their state."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
import traitlets

from nbkit.views.live.model import WidgetModel
from nbkit.views.static_html.static_table import static_table
from nbkit.views.static_html.text import summary
from nbkit.views.tables.source import TableSource


class TableModel(WidgetModel):
    """Holds a table whose questions `source` answers."""

    overview = traitlets.Dict().tag(sync=True)
    source: TableSource

    def __init__(self, source: TableSource) -> None:
        self.source = source
        super().__init__(overview=source.overview())

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
