"""Writes the page of a report: its title, the first screen, a section for each trace, and how to read it."""

from collections.abc import Callable, Sequence
from pathlib import Path

from nbkit import units
from nbkit.views.panels.panel import Contents
from nbkit.views.report.chapter import Chapter, chapters
from nbkit.views.report.front.first_screen import first_screen, worst_findings
from nbkit.views.report.front.steps import RecordedStep, recorded_steps, titles
from nbkit.views.report.section import trace_section
from nbkit.views.static_html.document import Body, document
from nbkit.views.static_html.style import STYLE
from nbkit.views.summary.names import shown

STATIC = Path(__file__).parents[1] / "static"
# For a reader who has never seen nbkit.
FOOTER = (
    "<footer><p>Made by nbkit, which records PyTorch steps in notebooks and scripts. Self time is the time of an op or "
    "module without the calls inside it. A noise ratio is the error of a result over what rounding may do to it: about "
    "1 is usual, above the threshold it is a mismatch. Phases are forward, backward, optimizer, and other for what is "
    "none of these.</p></footer>"
)


def report_page(
    traces: Sequence[Contents], title: str | None = None, draws: Callable[[int], None] = lambda number: None
) -> str:
    """Returns the page as text, the same for the same traces; `draws` is told each chapter, from 0 on, as it begins."""
    parts = chapters(traces)
    is_several = len(parts) > 1
    steps = recorded_steps(parts)
    on_top = {id(entry) for step in steps for _, entry in worst_findings(step)}
    sections = []
    for number, chapter in enumerate(parts):
        draws(number)
        sections.append(trace_section(chapter, on_top, has_heading=is_several))
    css = (STATIC / "report.css").read_text(encoding="utf-8")
    script = (STATIC / "report.js").read_text(encoding="utf-8")
    body = f"<main>{first_screen(steps, parts)}{''.join(sections)}</main>{FOOTER}"
    return document(shown(title or _title(steps, parts)), Body(body, f"{STYLE}{css}", script))


def _title(steps: Sequence[RecordedStep], parts: Sequence[Chapter]) -> str:
    """Returns the title of the only step, by its model; else how many steps, or traces that are none, there are."""
    if len(steps) == 1 and (steps[0].models or steps[0].name or len(parts) > 1):
        return titles(steps)[0]
    return parts[0].title if len(parts) == 1 else f"Report of {units.counted(len(steps), 'recording')}"
