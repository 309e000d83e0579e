"""Writes a matplotlib figure as an inline svg element; equal figures give equal text."""

import io
import re
from typing import TYPE_CHECKING
from warnings import catch_warnings, filterwarnings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Styles of all elements of a page, where only the picture is meant.
_STYLES = re.compile(r"\s*<defs>\s*<style[^>]*>\*\{([^}]*)\}</style>\s*</defs>")
_METADATA = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)
_ID, _USE = re.compile(r' id="([^"]*)"'), re.compile(r'(url\(#|href="#)([^")]+)')


def figure_svg(figure: "Figure", prefix: str = "") -> str:
    """Writes the figure as an inline svg element with texts as texts; its ids begin with `prefix`."""
    from matplotlib import rc_context

    buffer = io.StringIO()
    salt = figure.axes[0].get_title(loc="left")
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": salt}), catch_warnings():
        # Texts stay texts: whether matplotlib's own font has a letter matters to nobody.
        filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    svg = buffer.getvalue()
    # The prologue names a document type by its address; inside HTML it has no place.
    svg = _METADATA.sub("", svg[svg.index("<svg") :])
    if style := _STYLES.search(svg):
        svg = svg.replace(style[0], "", 1).replace("<svg", f'<svg style="{style[1]}"', 1)
    used = {name for _, name in _USE.findall(svg)}
    svg = _ID.sub(lambda match: f' id="{prefix}{match[1]}"' if match[1] in used else "", svg)
    return _USE.sub(rf"\g<1>{prefix}\2", svg)
