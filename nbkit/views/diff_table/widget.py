"""DiffTable shows what opdiff compared as an interactive table, whose rows are paged from the kernel."""

import traitlets

from nbkit.views.diff_table.source import DiffSource
from nbkit.views.live.widget import LiveWidget, code
from nbkit.views.tables.model import TableModel


class DiffTableModel(TableModel):
    """Holds what the diff table shows, and what is selected in it."""

    bundle = "diff_table"
    frame = "diffs"
    source: DiffSource
    source_type = DiffSource
    selected_row = traitlets.Int(None, allow_none=True).tag(sync=True)


class DiffTable(DiffTableModel, LiveWidget):
    """The compared tensors of an opdiff trace, the worst first; filters, thresholds, and the detail of each.

    `selected_row` is the place in `trace.diffs` of the row that is selected, in Python and in the table alike.
    """

    _esm = code("diff_table.js")
    _css = code("diff_table.css")
