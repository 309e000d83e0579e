"""Overview: the first screen of a report of several traces, with the main answers of each and a link to it."""

from collections.abc import Sequence
from dataclasses import replace
from html import escape

from nbkit.trace import Trace
from nbkit.views.report.statement import Statement, statements_html
from nbkit.views.report.summary import summary
from nbkit.views.static_table import NOTHING

# What the first screen must answer; the rest is in the section of each trace.
QUESTIONS = ("Incomplete", "What ran", "How long", "Where the time went", "Is anything wrong")


def overview_html(traces: Sequence[Trace], anchors: Sequence[str], titles: Sequence[str]) -> str:
    """A list of the traces, each with the first sentence of its main answers, of a bad one the first two."""
    items = [
        f'<li><a href="#{anchor}">{escape(title)}</a>{_answers(trace, anchor)}</li>'
        for trace, anchor, title in zip(traces, anchors, titles, strict=True)
    ]
    return f'<nav aria-label="Traces"><ul class="nbkit-overview">{"".join(items)}</ul></nav>'


def _answers(trace: Trace, anchor: str) -> str:
    if not len(trace.ops):
        return NOTHING
    return statements_html([_short(one) for one in summary(trace) if one.question in QUESTIONS], anchor)


def _short(statement: Statement) -> Statement:
    most = 2 if statement.tone == "bad" else 1
    return replace(statement, sentences=statement.sentences[:most])
