"""Overview: the first screen of a report of several traces, with the main answers of each and a link to it."""

from collections.abc import Sequence
from dataclasses import replace
from html import escape

from nbkit.views.report.chapter import Chapter
from nbkit.views.statements.statement import Statement, statements_html
from nbkit.views.static_html.static_table import nothing_html

# What the first screen must answer; the rest is in the section of each trace.
QUESTIONS = ("Incomplete", "What ran", "How long", "Where the time went", "Is anything wrong", "What it is",
             "What it is made of")  # fmt: skip


def overview_html(chapters: Sequence[Chapter]) -> str:
    """A list of the traces, each with the first sentence of its main answers, of a bad one the first two."""
    items = [f'<li><a href="#{one.anchor}">{escape(one.title)}</a>{_answers(one)}</li>' for one in chapters]
    return f'<nav aria-label="Traces"><ul class="nbkit-overview">{"".join(items)}</ul></nav>'


def _answers(chapter: Chapter) -> str:
    short = [_short(one) for one in chapter.statements if one.question in QUESTIONS]
    return statements_html(short, chapter.anchor) if short else nothing_html(chapter.contents.trace)


def _short(statement: Statement) -> Statement:
    most = 2 if statement.tone == "bad" else 1
    return replace(statement, sentences=statement.sentences[:most])
