"""TableWidget is the base of the table widgets: rows are paged from the kernel, none is in their state."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anywidget
import pandas as pd
import traitlets

from nbkit.views.static_html.mimebundle import Bundle, with_static_views
from nbkit.views.static_html.static_table import static_table
from nbkit.views.static_html.text import summary
from nbkit.views.tables.source import TableSource

STATIC = Path(__file__).parents[1] / "static"


class TableWidget(anywidget.AnyWidget):
    """Shows a table whose questions `source` answers."""

    overview = traitlets.Dict().tag(sync=True)
    source: TableSource

    def __init__(self, source: TableSource) -> None:
        self.source = source
        super().__init__(overview=source.overview())
        self.on_msg(self._reply)

    @property
    def groups(self) -> pd.DataFrame | None:
        """Returns one row per group that the table shows now, in its order; null while its rows are in no groups.

        `calls` counts the rows of a group, `min`, `median` and `max` are those of its rows' self times (us); of layers
        those of the layers' sums, and `instances` counts the layers. A text is what all rows have, or how many differ.
        """
        return self.source.groups()

    def _repr_mimebundle_(self, **options: Any) -> Bundle | None:
        """Returns the widget, and text and HTML of the same where no widget can be shown."""
        trace = self.source.trace
        fallbacks = {"text/plain": summary(trace), "text/html": static_table(trace)}
        return with_static_views(super()._repr_mimebundle_(**options), fallbacks)

    def _reply(self, _: object, message: Mapping[str, Any], buffers: object) -> None:
        self.send(self.source.answer(message))
