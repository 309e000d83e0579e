"""The flame graph of a report: live, and as a static picture."""

from nbkit.views.flamegraph.difference import flame_states
from nbkit.views.flamegraph.difference_svg import difference_html
from nbkit.views.flamegraph.report_data import payload
from nbkit.views.flamegraph.svg import flame_svg
from nbkit.views.panels.panel import Contents, Panel


def flame_panel(contents: Contents) -> Panel:
    """Returns the panel of the flame graph, or of its difference to the base, with the ops of the op table's panel."""
    trace, base = contents.trace, contents.base
    states = flame_states(trace, base)
    static = flame_svg(trace) if base is None else difference_html(states)
    return Panel("flamegraph", "Flame graph", payload(states, base), static)
