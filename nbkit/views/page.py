"""A trace as one HTML page that opens offline: summary, charts as inline SVG and tables; a flamegraph stays live."""

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from nbkit.errors import NbkitError
from nbkit.trace import Trace
from nbkit.views.calls_table import slowest_calls_table
from nbkit.views.document import Body, document
from nbkit.views.facts import facts
from nbkit.views.figure_svg import figure_svg
from nbkit.views.html_table import STYLE, facts_html
from nbkit.views.static_table import NOTHING, totals_tables
from nbkit.views.verbs import view_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Inches from which on a figure would be too small beside another one.
WIDE = 8.0


def write_page(trace: Trace, path: str | Path, base: Trace | None = None) -> Path:
    """Write the page; its path. With `base` the flamegraph shows what grew or shrank against that trace.

    Raises NbkitError if it cannot be written; nothing half-written is left there.
    """
    target = Path(path)
    text = page(trace, base)
    partial: Path | None = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
        partial = Path(name)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        partial.chmod(0o644)
        partial.replace(target)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise NbkitError(f"Cannot write the page to {target}: {reason}; free space or choose another place.") from error
    finally:
        if partial is not None:
            partial.unlink(missing_ok=True)
    return target


def page(trace: Trace, base: Trace | None = None) -> str:
    """The page as text."""
    known, view = facts(trace), view_of(trace)
    head = f'<style>{STYLE}</style><div class="nbkit-static">{facts_html(known)}</div>'
    if len(trace.ops) == 0:
        return document(known.title, Body(f"{head}{NOTHING}"))
    top = view.top(trace, base)
    charts = "".join(_chart(figure) for figure in view.charts(trace))
    tables = totals_tables(trace, 20)
    calls = "".join(table(trace, 50) for table in dict.fromkeys((slowest_calls_table, view.calls)))
    html = (
        f'{head}{top.html}<div class="nbkit-static">{tables}</div><div class="charts">{charts}</div>'
        f'<div class="nbkit-static">{calls}</div>'
    )
    return document(known.title, Body(html, top.script))


def _chart(figure: "Figure") -> str:
    """A figure as inline SVG; a wide one gets a line of its own."""
    kind = ' class="wide"' if figure.get_figwidth() > WIDE else ""
    return f"<figure{kind}>{figure_svg(figure)}</figure>"
