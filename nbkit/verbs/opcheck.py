"""opcheck finds where values go wrong first. Its trace is shown with the findings above what optrace shows."""

from collections.abc import Callable
from typing import Any

from nbkit.verbs.verb import Recorder, Verb
from nbkit.views.ops_view import led_by
from nbkit.views.sections.check import check_sections


def _function() -> Callable[..., Any]:
    from nbkit.capture.check.opcheck import opcheck

    return opcheck


OPCHECK = Verb(
    "opcheck",
    view=led_by(check_sections),
    recorder=Recorder(
        function=_function,
        summary="find where NaN, Inf and lost precision begin",
        description="Find where NaN, Inf and lost precision begin in this cell: forward, backward and optimizer.",
        notes="The findings come first.",
    ),
)
