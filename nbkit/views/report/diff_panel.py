"""The diff table of a report: live, and as a table of the worst differences."""

from nbkit.views.diff_sections import worst_section
from nbkit.views.html_table import sections_html
from nbkit.views.report.diff_data import diff_data
from nbkit.views.report.panel import Contents, Panel

ROWS = 50


def diff_panel(contents: Contents) -> Panel:
    """All compared tensors; the worst of them where no script runs."""
    data = diff_data(contents.trace, values=contents.values)
    worst = sections_html([worst_section(contents.trace, ROWS)])
    return Panel("diff_table", "Differences, the worst first", data, f'<div class="nbkit-static">{worst}</div>')
