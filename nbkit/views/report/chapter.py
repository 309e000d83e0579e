"""Chapter: one trace of a report, with its place in the page and what is said of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

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
    """A trace; ids in its part of the page begin with `anchor`. What is said of it is worked out when asked for."""

    contents: Contents
    anchor: str
    numbered: str

    @cached_property
    def title(self) -> str:
        return f"{self.numbered}{facts(self.contents.trace).title}"

    @cached_property
    def brief(self) -> Brief:
        return brief_of(self.contents.trace)

    @property
    def answers(self) -> list[Statement]:
        """Returns the statements for the first screen."""
        return [one for one in self._said if one.question in FIRST]

    @property
    def statements(self) -> list[Statement]:
        """Returns the statements for the trace's own section."""
        return [one for one in self._said if one.question not in FIRST]

    @cached_property
    def _said(self) -> list[Statement]:
        """Returns all statements; there are none without rows to show."""
        trace = self.contents.trace
        return [] if view_of(trace).is_empty(trace) else summary_statements(trace, self.contents.base)


def chapters(traces: Sequence[Contents]) -> list[Chapter]:
    """Returns a chapter for each; titles of several are numbered, so that two of the same run can be told apart."""
    return [
        Chapter(contents, f"t{number}", f"{number}. " if len(traces) > 1 else "")
        for number, contents in enumerate(traces, 1)
    ]
