"""opaudit finds what is wrong in a training step. Its trace is shown with the findings above what optrace shows."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from nbkit.trace.trace import Trace
from nbkit.verbs.verb import Recorder, Verb
from nbkit.views.ops_view import OPS_VIEW
from nbkit.views.sections.audit import audit_sections
from nbkit.views.sections.section import Section, op_sections
from nbkit.views.statements.verdict import audit_verdict


def _function() -> Callable[..., Any]:
    from nbkit.capture.audit.opaudit import opaudit

    return opaudit


def _widget(trace: Trace) -> Any:
    from nbkit.views.widgets import sections_and_ops

    return sections_and_ops(trace, audit_sections)


def _sections(trace: Trace, count: int) -> list[Section]:
    return [*audit_sections(trace, count), *op_sections(trace, count)]


OPAUDIT = Verb(
    "opaudit",
    view=replace(OPS_VIEW, widget=_widget, sections=_sections, verdict=audit_verdict, outcome=audit_sections),
    recorder=Recorder(
        function=_function,
        summary="find what is wrong in a training step",
        description="Find what is wrong in the training step of this cell: gradients, updates and modes of all "
        "parameters.",
        notes="The findings stand first. The cell is to hold a whole step: forward, backward, optimizer.",
        only_in_code=("model", "optimizer"),
    ),
)
