"""opcheck finds where values go wrong first. Its trace is shown with the findings above what optrace shows."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from nbkit.trace.trace import Trace
from nbkit.verbs.verb import Recorder, Verb
from nbkit.views.ops_view import OPS_VIEW
from nbkit.views.sections.check import check_sections
from nbkit.views.sections.section import Section, op_sections
from nbkit.views.statements.verdict import check_verdict


def _function() -> Callable[..., Any]:
    from nbkit.capture.check.opcheck import opcheck

    return opcheck


def _widget(trace: Trace) -> Any:
    from nbkit.views.widgets import sections_and_ops

    return sections_and_ops(trace, check_sections)


def _sections(trace: Trace, count: int) -> list[Section]:
    return [*check_sections(trace, count), *op_sections(trace, count)]


OPCHECK = Verb(
    "opcheck",
    view=replace(OPS_VIEW, widget=_widget, sections=_sections, verdict=check_verdict, outcome=check_sections),
    recorder=Recorder(
        function=_function,
        summary="find where NaN, Inf and lost precision begin",
        description="Find where NaN, Inf and lost precision begin in this cell: forward, backward and optimizer.",
        notes="The findings stand first.",
    ),
)
