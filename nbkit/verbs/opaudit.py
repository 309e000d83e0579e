"""opaudit finds what is wrong in a training step. Its trace is shown as the op table below the brief."""

from collections.abc import Callable
from typing import Any

from nbkit.verbs.verb import Recorder, Verb
from nbkit.views.ops_view import OPS_VIEW


def _function() -> Callable[..., Any]:
    from nbkit.capture.audit.opaudit import opaudit

    return opaudit


OPAUDIT = Verb(
    "opaudit",
    view=OPS_VIEW,
    recorder=Recorder(
        function=_function,
        summary="find what is wrong in a training step",
        description="Find what is wrong in the training step of this cell: gradients, updates and modes of all "
        "parameters.",
        notes="The findings come first. The cell is to hold a whole step: forward, backward, optimizer.",
        only_in_code=("model", "optimizer"),
    ),
)
