"""AlignmentTable shows two executions side by side as an interactive table, whose rows are paged from the kernel."""

import traitlets

from nbkit.views.alignment.source import AlignmentSource
from nbkit.views.live.widget import LiveWidget, code
from nbkit.views.tables.model import TableModel


class AlignmentTableModel(TableModel):
    """Holds what the alignment table shows, and what is selected in it; its front end is that of the diff table."""

    bundle = "diff_table"
    frame = "alignment"
    source: AlignmentSource
    source_type = AlignmentSource
    selected_row = traitlets.Int(None, allow_none=True).tag(sync=True)


class AlignmentTable(AlignmentTableModel, LiveWidget):
    """The results of two executions side by side, with mark, verdict and errors; filters, and the detail of each pair.

    `selected_row` is the place in `trace.alignment` of the row that is selected, in Python and in the table alike.
    """

    _esm = code("diff_table.js")
    _css = code("diff_table.css")
