"""Writes the page of a report: its title, an overview of several traces, and a section for each."""

from collections.abc import Sequence
from dataclasses import replace
from html import escape
from pathlib import Path

from nbkit.views.brief.html import worst_html
from nbkit.views.panels.panel import Contents
from nbkit.views.report.chapter import Chapter, chapters
from nbkit.views.report.section import trace_section
from nbkit.views.statements.statement import Statement, statements_html
from nbkit.views.static_html.document import Body, document
from nbkit.views.static_html.static_table import nothing_html
from nbkit.views.static_html.style import STYLE
from nbkit.views.summary.names import shown

STATIC = Path(__file__).parents[1] / "static"
# What the first screen must answer; the rest is in the section of each trace.
QUESTIONS = ("What ran", "How long", "Where the time went", "Is anything wrong", "What it is",
             "What it is made of")  # fmt: skip


def report_page(traces: Sequence[Contents], title: str | None = None) -> str:
    """Returns the page as text; the same for the same traces."""
    parts = chapters(traces)
    is_several = len(parts) > 1
    sections = [trace_section(chapter, has_heading=is_several) for chapter in parts]
    overview = _overview(parts) if is_several else ""
    css = (STATIC / "report.css").read_text(encoding="utf-8")
    script = (STATIC / "report.js").read_text(encoding="utf-8")
    title = title or (f"Report of {len(parts)} traces" if is_several else parts[0].title)
    return document(shown(title), Body(overview + "".join(sections), f"{STYLE}{css}", script))


def _overview(chapters: Sequence[Chapter]) -> str:
    """Lists the traces, each with a link to its section and the first sentence of its main answers."""
    items = [f'<li><a href="#{part.anchor}">{escape(part.title)}</a>{_answers(part)}</li>' for part in chapters]
    return f'<nav aria-label="Traces"><ul class="nbkit-overview">{"".join(items)}</ul></nav>'


def _answers(chapter: Chapter) -> str:
    short = [_short(statement) for statement in chapter.statements if statement.question in QUESTIONS]
    if not short:
        return nothing_html(chapter.contents.trace)
    return worst_html(chapter.brief, chapter.anchor) + statements_html(short, chapter.anchor)


def _short(statement: Statement) -> Statement:
    """Keeps the first sentence of an answer, of a bad one the first two."""
    most = 2 if statement.tone == "bad" else 1
    return replace(statement, sentences=statement.sentences[:most])
