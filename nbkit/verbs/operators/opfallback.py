"""opfallback runs chosen ops on the CPU inside the step. Its trace is shown with what was replaced above the ops."""

from collections.abc import Callable
from typing import Any

from nbkit.trace.trace import Trace
from nbkit.verbs.verb import ABOUT_PATTERNS, Recorder, Verb, why_empty
from nbkit.views.ops_view import led_by
from nbkit.views.sections.operators import replaced_sections


def _function() -> Callable[..., Any]:
    from nbkit.capture.operators.fallback import opfallback

    return opfallback


def _nothing(trace: Trace) -> str | None:
    if len(trace.frames.get("replaced", ())):
        return None
    if len(trace.ops):
        return "No op ran on the CPU instead: the filters or the kind of the ops left none; see trace.meta['skipped']."
    return why_empty(trace)


OPFALLBACK = Verb(
    "opfallback",
    view=led_by(replaced_sections),
    recorder=Recorder(
        function=_function,
        summary="run chosen ops of the step on the CPU",
        description="Run chosen ops of this cell on the CPU, forward, backward and optimizer, with all their effects.",
        notes="If the step is right with an op on the CPU and wrong without, the device's kernel of that op is at "
        f"fault. The frame `replaced` has a row per call.\n\n{ABOUT_PATTERNS}",
        nothing=_nothing,
    ),
)
