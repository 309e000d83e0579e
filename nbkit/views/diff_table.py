"""DiffTable: the interactive table of what opdiff compared; rows are paged from the kernel, as in the op table."""

from collections.abc import Mapping
from typing import Any

import anywidget
import traitlets

from nbkit.trace import Trace
from nbkit.views.diff_source import DiffSource
from nbkit.views.mimebundle import Bundle, with_twins
from nbkit.views.op_table import STATIC
from nbkit.views.static_table import static_table
from nbkit.views.text import summary


class DiffTable(anywidget.AnyWidget):
    """The compared tensors of an opdiff trace, the worst first; filters, thresholds, and the detail of each.

    `selected_row` is the place in `trace.diffs` of the row that is selected, in Python and in the table alike.
    """

    _esm = STATIC / "diff_table.js"
    _css = STATIC / "diff_table.css"
    overview = traitlets.Dict().tag(sync=True)
    selected_row = traitlets.Int(None, allow_none=True).tag(sync=True)

    def __init__(self, trace: Trace) -> None:
        self.source = DiffSource(trace)
        super().__init__(overview=self.source.overview())
        self.on_msg(self._reply)

    def _repr_mimebundle_(self, **options: Any) -> Bundle | None:
        """The widget, and text and HTML of the same where no widget can be shown."""
        trace = self.source.trace
        twins = {"text/plain": summary(trace), "text/html": static_table(trace)}
        return with_twins(super()._repr_mimebundle_(**options), twins)

    def _reply(self, _: object, message: Mapping[str, Any], buffers: object) -> None:
        answer = self.source.answer(message)
        self.send(answer, [] if answer["kind"] == "error" else self.source.buffers(message))

    @traitlets.validate("selected_row")
    def _known_row(self, proposal: Mapping[str, Any]) -> int | None:
        row: int | None = proposal["value"]
        n_rows = len(self.source.trace.diffs)
        if row is not None and not 0 <= row < n_rows:
            raise traitlets.TraitError(f"There is no row {row}; the rows of this trace are 0 to {n_rows - 1}.")
        return row
