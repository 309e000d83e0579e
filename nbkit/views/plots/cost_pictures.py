"""Pictures of a step's cost as HTML that needs no script, for notebooks and reports."""

import re
from typing import TYPE_CHECKING

from nbkit.analysis.cost.op_totals import has_whole_costs
from nbkit.trace.once import once_per_view
from nbkit.trace.trace import Trace
from nbkit.views.plots.cost import draw_cost
from nbkit.views.plots.memory_by_kind import STATIC_BUCKETS, memory_by_kind_picture
from nbkit.views.plots.picture.areas_svg import areas_svg
from nbkit.views.static_html.figure_svg import figure_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Of a length in points the first digit behind the dot can be seen.
_PATH, _TOO_FINE = re.compile(r' d="[^"]*"'), re.compile(r"(\d\.\d)\d+")

_NAMESPACE = re.compile(r' xmlns(:xlink)?="[^"]*"')


@once_per_view
def memory_picture(trace: Trace) -> str:
    """Returns the memory of the step over its ops; empty where it is not known, or for a part of the step alone."""
    if not trace.complete or not len(trace.frames.get("memory", ())):
        return ""
    picture = memory_by_kind_picture(trace, STATIC_BUCKETS)
    return f'<figure class="wide">{areas_svg(picture)}</figure>' if picture.charts[0].series else ""


def cost_pictures(trace: Trace) -> str:
    """Returns the memory of the step over its ops, and its FLOPs by module and op."""
    flops = _figure(draw_cost(trace), "cost-flops-") if has_whole_costs(trace) else ""
    return f'<div class="charts">{memory_picture(trace)}{flops}</div>'


def _figure(figure: "Figure", prefix: str) -> str:
    svg = _PATH.sub(lambda match: _TOO_FINE.sub(r"\1", match[0]), figure_svg(figure, prefix))
    # Inside HTML an svg element needs no namespaces, which are addresses.
    svg = _NAMESPACE.sub("", svg).replace("xlink:href", "href")
    return f'<figure class="wide">{svg}</figure>'
