"""opdoctor finds all that is wrong with a step. Its trace is shown as the brief, the flame graph and the op table."""

from dataclasses import replace
from typing import Any

from nbkit.trace.trace import Trace
from nbkit.verbs.verb import Recorder, Verb
from nbkit.views.ops_view import FLAME_VIEW, op_charts
from nbkit.views.plots import draw_memory


def _charts(trace: Trace) -> list[Any]:
    return [*op_charts(trace), *([draw_memory(trace)] if len(trace.frames.get("memory", ())) else [])]


OPDOCTOR = Verb(
    "opdoctor",
    view=replace(FLAME_VIEW, charts=_charts),
    recorder=Recorder(
        home="nbkit.capture.doctor.opdoctor:opdoctor",
        summary="find what is wrong with a step: values, training, time and memory",
        description="Find what is wrong with the step of this cell: what opcheck, opaudit and optime find, in one "
        "list, the causes first, with the step's time and its peak of memory.",
        notes="The cell runs once. With -r N it runs N times, side effects and output too: the first run is looked "
        "at, the others are timed.",
        only_in_code=("model", "optimizer"),
        is_repeated=True,
    ),
)
