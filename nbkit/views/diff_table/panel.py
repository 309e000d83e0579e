"""The diff table of a report: live, and as a table of the worst differences."""

from nbkit.views.diff_table.report_data import diff_data
from nbkit.views.panels.panel import Contents, Panel
from nbkit.views.sections.diff import worst_section
from nbkit.views.sections.writers import to_html

ROWS = 50


def diff_panel(contents: Contents) -> Panel:
    """Returns the panel of all compared tensors, which shows the worst of them where no script runs."""
    data = diff_data(contents.trace, values=contents.values)
    worst = to_html([worst_section(contents.trace, ROWS)])
    return Panel("diff_table", "Differences, worst first", data, f'<div class="nbkit-static">{worst}</div>')
