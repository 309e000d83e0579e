"""A trace as one HTML page that opens offline: summary, charts as inline SVG, tables; no script, no request."""

import io
import os
import re
import tempfile
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from nbkit.errors import NbkitError
from nbkit.trace import Trace
from nbkit.views.facts import facts
from nbkit.views.plots import draw_modules, draw_ops
from nbkit.views.static_table import STYLE as TABLE_STYLE
from nbkit.views.static_table import first_calls_table, slowest_calls_table, totals_tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The page's own policy forbids whatever an escape might have missed: no script and no load can happen.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
STYLE = """
:root{color-scheme:light dark;--page-bg:#fff;--page-fg:#1f2328}
@media (prefers-color-scheme:dark){:root{--page-bg:#161616;--page-fg:#e6e6e6}}
body{margin:0 auto;padding:16px;max-width:1100px;background:var(--page-bg);color:var(--page-fg);
font:14px/1.5 system-ui,sans-serif}
h1{font-size:20px;margin:0 0 12px;overflow-wrap:anywhere}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(420px,100%),1fr));gap:12px;margin:16px 0}
.charts figure{margin:0}
.charts svg{width:100%;height:auto;background:#fff;border-radius:4px}
@media print{body{max-width:none;padding:0}}
"""


def write_page(trace: Trace, path: str | Path) -> Path:
    """Write the page; its path. Raises NbkitError if it cannot be written; nothing half-written is left there."""
    target = Path(path)
    text = page(trace)
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


def page(trace: Trace) -> str:
    """The page as text."""
    title = escape(facts(trace).title)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title>'
        f"<style>{STYLE}</style></head><body><h1>{title}</h1>{_body(trace)}</body></html>\n"
    )


def _body(trace: Trace) -> str:
    totals = f'<style>{TABLE_STYLE}</style><div class="nbkit-static">{totals_tables(trace, 20)}</div>'
    if len(trace.ops) == 0:
        return f"{totals}<p>No op was recorded.</p>"
    charts = "".join(f"<figure>{_svg(figure)}</figure>" for figure in (draw_ops(trace), draw_modules(trace)))
    calls = slowest_calls_table(trace, 50) + first_calls_table(trace, 50)
    return f'{totals}<div class="charts">{charts}</div><div class="nbkit-static">{calls}</div>'


def _svg(figure: "Figure") -> str:
    """The figure as an inline svg element: texts stay texts, and ids are its own."""
    from matplotlib import rc_context

    buffer = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": figure.axes[0].get_title(loc="left")}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    svg = buffer.getvalue()
    # The prologue names a document type by its address; inside HTML it has no place.
    return re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
