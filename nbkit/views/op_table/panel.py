"""The op table of a report: live, and as tables of single calls."""

from nbkit.views.op_table.calls import first_calls_table, slowest_calls_table
from nbkit.views.op_table.report_data import op_data
from nbkit.views.panels.panel import Contents, Panel
from nbkit.views.sections.cost import costliest_calls

CALLS = 50


def op_panel(contents: Contents) -> Panel:
    """Returns the panel of all ops, which lists the slowest and the first of them where no script runs."""
    trace = contents.trace
    calls = slowest_calls_table(trace, CALLS) + first_calls_table(trace, CALLS)
    return Panel("op_table", "Ops", op_data(trace), f'<div class="nbkit-static">{calls}</div>')


def cost_panel(contents: Contents) -> Panel:
    """Returns the panel of all ops with their costs, which lists the costliest of them where no script runs."""
    calls = costliest_calls(contents.trace, CALLS)
    return Panel("op_table", "Ops", op_data(contents.trace), f'<div class="nbkit-static">{calls}</div>')
