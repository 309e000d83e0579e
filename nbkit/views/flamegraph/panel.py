"""The flamegraph of a report: live, and as a still picture."""

from nbkit.views.flamegraph.difference import flame_states
from nbkit.views.flamegraph.difference_svg import difference_html
from nbkit.views.flamegraph.report_data import payload
from nbkit.views.flamegraph.svg import flame_svg
from nbkit.views.panels.panel import Contents, Panel


def flame_panel(contents: Contents) -> Panel:
    """The flamegraph, as the difference to the base if there is one; its ops are those of the op table's panel."""
    trace, base = contents.trace, contents.base
    states = flame_states(trace, base)
    static = flame_svg(trace) if base is None else difference_html(states)
    return Panel("flamegraph", "Flamegraph", payload(states, base), static)
