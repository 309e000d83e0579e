"""The page of a report as text: what it is of, an overview of several traces, and a section for each."""

from collections.abc import Sequence
from pathlib import Path

from nbkit.views.document import Body, document
from nbkit.views.html_table import STYLE
from nbkit.views.names import shown
from nbkit.views.report.overview import overview_html
from nbkit.views.report.panel import Contents
from nbkit.views.report.section import trace_section
from nbkit.views.report.titles import titles

STATIC = Path(__file__).parents[1] / "static"


def report_page(traces: Sequence[Contents], title: str | None = None) -> str:
    """The page; the same for the same traces."""
    names = titles([contents.trace for contents in traces])
    anchors = [f"t{number}" for number in range(1, len(names) + 1)]
    is_several = len(names) > 1
    sections = [
        trace_section(contents, anchor, name if is_several else "")
        for contents, anchor, name in zip(traces, anchors, names, strict=True)
    ]
    overview = overview_html([contents.trace for contents in traces], anchors, names) if is_several else ""
    css = (STATIC / "report.css").read_text(encoding="utf-8").replace("</", "<\\/")
    script = (STATIC / "report.js").read_text(encoding="utf-8")
    title = title or (f"Report of {len(names)} traces" if is_several else names[0])
    return document(shown(title), Body(overview + "".join(sections), f"{STYLE}{css}", script))
