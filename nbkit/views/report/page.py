"""The page of a report as text: what it is of, an overview of several traces, and a section for each."""

from collections.abc import Sequence
from pathlib import Path

from nbkit.views.panels.panel import Contents
from nbkit.views.report.chapter import chapters
from nbkit.views.report.overview import overview_html
from nbkit.views.report.section import trace_section
from nbkit.views.static_html.document import Body, document
from nbkit.views.static_html.style import STYLE
from nbkit.views.summary.names import shown

STATIC = Path(__file__).parents[1] / "static"


def report_page(traces: Sequence[Contents], title: str | None = None) -> str:
    """The page; the same for the same traces."""
    found = chapters(traces)
    is_several = len(found) > 1
    sections = [trace_section(chapter, has_heading=is_several) for chapter in found]
    overview = overview_html(found) if is_several else ""
    css = (STATIC / "report.css").read_text(encoding="utf-8")
    script = (STATIC / "report.js").read_text(encoding="utf-8")
    title = title or (f"Report of {len(found)} traces" if is_several else found[0].title)
    return document(shown(title), Body(overview + "".join(sections), f"{STYLE}{css}", script))
