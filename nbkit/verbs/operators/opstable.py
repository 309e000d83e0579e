"""opstable tells which ops do not give the same bits again. Its trace shows them above what optrace shows."""

from collections.abc import Callable
from typing import Any

from nbkit.trace.trace import Trace
from nbkit.verbs.options.generated import Option
from nbkit.verbs.verb import ABOUT_PATTERNS, Recorder, Verb, why_empty
from nbkit.views.ops_view import led_by
from nbkit.views.sections.stability import stability_sections


def _function() -> Callable[..., Any]:
    from nbkit.capture.operators.stable.opstable import opstable

    return opstable


def _nothing(trace: Trace) -> str | None:
    if len(trace.stability):
        return None
    if len(trace.ops):
        return "No op was run again: the filters, phases or the kind of the ops left none; see trace.meta['skipped']."
    return why_empty(trace)


OPSTABLE = Verb(
    "opstable",
    view=led_by(stability_sections),
    recorder=Recorder(
        function=_function,
        summary="run every op again, tell whether the bits are the same",
        description="Run every op of this cell again from the same inputs, forward and backward, and tell whether it "
        "gives the same bits: from run to run, in other batches, with other threads and strides.",
        notes=f"The frame `stability` has a row per call.\n\n{ABOUT_PATTERNS}",
        special={
            "reruns": Option(help="run each call again N times (default: 2)"),
            "checks": Option(help="try only these, too: batch, threads, strides (default: all)"),
            "alike": Option(help="try N calls of an op with the same shapes so (default: 2)"),
        },
        nothing=_nothing,
    ),
)
