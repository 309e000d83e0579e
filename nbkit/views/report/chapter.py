"""Chapter: one trace of a report, with its place in the page and what is said of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from nbkit.views.brief.brief import Brief, brief_of
from nbkit.views.panels.panel import Contents
from nbkit.views.report.summary import summary_statements
from nbkit.views.statements.against import QUESTION as AGAINST
from nbkit.views.statements.alignment import QUESTION as ALIGNED
from nbkit.views.statements.cost import QUESTIONS
from nbkit.views.statements.operators import QUESTION
from nbkit.views.statements.statement import Statement
from nbkit.views.static_html.view import view_of
from nbkit.views.summary.facts import facts

# What the first screen answers in words.
FIRST = (
    AGAINST, ALIGNED, QUESTION, *QUESTIONS, "What changed", "Is anything wrong", "What it is", "What it is made of",
    "What held the memory",
)  # fmt: skip


@dataclass(frozen=True)
class Chapter:
    """A trace; ids in its part of the page begin with `anchor`. Without rows to show there are no statements.

    `answers` are the statements for the first screen, `statements` those for the trace's own section.
    """

    contents: Contents
    anchor: str
    title: str
    brief: Brief
    answers: list[Statement]
    statements: list[Statement]


def chapters(traces: Sequence[Contents]) -> list[Chapter]:
    """Returns a chapter for each; titles of several are numbered, so that two of the same run can be told apart."""
    return [
        _chapter(contents, f"t{number}", f"{number}. " if len(traces) > 1 else "")
        for number, contents in enumerate(traces, 1)
    ]


def _chapter(contents: Contents, anchor: str, numbered: str) -> Chapter:
    trace = contents.trace
    statements = [] if view_of(trace).is_empty(trace) else summary_statements(trace, contents.base)
    return Chapter(
        contents,
        anchor,
        title=f"{numbered}{facts(trace).title}",
        brief=brief_of(trace),
        answers=[one for one in statements if one.question in FIRST],
        statements=[one for one in statements if one.question not in FIRST],
    )
