"""A matplotlib figure as an inline svg element, the same for the same figure."""

import io
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figure_svg(figure: "Figure") -> str:
    """The figure as an inline svg element: texts stay texts, and ids are its own."""
    from matplotlib import rc_context

    buffer = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": figure.axes[0].get_title(loc="left")}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    svg = buffer.getvalue()
    # The prologue names a document type by its address; inside HTML it has no place.
    return re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
