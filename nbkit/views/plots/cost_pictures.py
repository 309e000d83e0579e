"""Pictures of a step's cost as HTML that needs no script, for notebooks and reports."""

import re
from typing import TYPE_CHECKING

from nbkit.analysis.cost.op_totals import has_whole_costs
from nbkit.trace.trace import Trace
from nbkit.views.plots.cost import draw_cost
from nbkit.views.plots.memory import draw_memory
from nbkit.views.static_html.figure_svg import figure_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Of a length in points the first digit behind the dot can be seen.
_PATH, _TOO_FINE = re.compile(r' d="[^"]*"'), re.compile(r"(\d\.\d)\d+")

_NAMESPACE = re.compile(r' xmlns(:xlink)?="[^"]*"')


def memory_picture(trace: Trace) -> str:
    """Returns the memory of the step over its ops; empty where it is not known, or for a part of the step alone."""
    if not trace.complete or not len(trace.frames.get("memory", ())):
        return ""
    return _figure(draw_memory(trace), "cost-memory-")


def cost_pictures(trace: Trace) -> str:
    """Returns the memory of the step over its ops, and its FLOPs by module and op."""
    flops = _figure(draw_cost(trace), "cost-flops-") if has_whole_costs(trace) else ""
    return f'<div class="charts">{memory_picture(trace)}{flops}</div>'


def _figure(figure: "Figure", prefix: str) -> str:
    svg = _PATH.sub(lambda match: _TOO_FINE.sub(r"\1", match[0]), figure_svg(figure, prefix))
    # Inside HTML an svg element needs no namespaces, which are addresses.
    svg = _NAMESPACE.sub("", svg).replace("xlink:href", "href")
    return f'<figure class="wide">{svg}</figure>'
