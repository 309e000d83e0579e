"""Panel: a live widget of a report, and what stands in its place where no script runs."""

import base64
from dataclasses import dataclass
from html import escape

from nbkit.trace.trace import Trace


@dataclass(frozen=True)
class Contents:
    """What a report is to show of a trace: against `base`, if there is one, and whether with values of tensors."""

    trace: Trace
    base: Trace | None = None
    values: bool = False


@dataclass(frozen=True)
class Panel:
    """A widget by the name that `widgets/src/report/panels.js` knows it by, which is also its anchor in the page.

    `data` are its compressed columns, `static` is HTML of the same, for pages without scripts and on paper.
    """

    widget: str
    title: str
    data: bytes
    static: str


def panel_html(panel: Panel, anchor: str) -> str:
    """Writes the panel as a section; the page's script draws its widget and hides the static view."""
    # Base64 has no character that means anything to a parser, so the data cannot leave their element.
    packed = base64.b64encode(panel.data).decode("ascii")
    return (
        f'<section class="nbkit-panel" id="{anchor}-{panel.widget}" data-widget="{panel.widget}">'
        f'<h3>{escape(panel.title)}</h3><div class="nbkit-live" hidden></div>'
        f'<div class="nbkit-static-view">{panel.static}</div>'
        f'<script type="application/octet-stream">{packed}</script></section>'
    )
