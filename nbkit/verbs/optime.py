"""optime times every op of a step. Its trace is shown as the flame graph and the op table, linked, and tables."""

from dataclasses import replace
from typing import Any

from nbkit.trace.trace import Trace
from nbkit.verbs.verb import Recorder, Verb, own_failure, why_empty
from nbkit.views.op_table.calls import slowest_calls_table
from nbkit.views.ops_view import FLAME_VIEW, op_charts
from nbkit.views.plots import draw_memory
from nbkit.views.plots.picture.static import static_pictures
from nbkit.views.plots.repeats import repeats_picture
from nbkit.views.plots.roofline import roofline_picture
from nbkit.views.sections.time import time_sections


def _charts(trace: Trace) -> list[Any]:
    memory = [draw_memory(trace)] if "memory" in trace.frames else []
    return [*op_charts(trace), *memory, *static_pictures(trace, repeats_picture, roofline_picture)]


def _nothing(trace: Trace) -> str | None:
    # The step itself is always a row; a block that the user named is worth showing even if no op ran in it.
    if len(trace.ops) > 1:
        return None
    if len(trace.ops) == 0 and (error := trace.meta.get("error")):
        return own_failure(error) or (
            f"The cell ended with {error['type']} while it warmed up, so nothing was recorded."
        )
    return why_empty(Trace({**trace.frames, "ops": trace.ops.iloc[:0]}, trace.meta))


OPTIME = Verb(
    "optime",
    view=replace(
        FLAME_VIEW,
        sections=time_sections,
        charts=_charts,
        calls=slowest_calls_table,
        totals=time_sections,
    ),
    recorder=Recorder(
        home="nbkit.capture.profiler.optime:optime",
        summary="time every op on the profiler's clock",
        description="Where the time and memory of this cell go: modules, ops, autograd nodes and, on a device, "
        "kernels, on one timeline.",
        notes="With -w or -r the cell's code runs several times, side effects and output too; the value is that of the "
        "last run, an error ends all. Every time is the median over the runs; those of each are in the "
        "frames samples and timings.",
        nothing=_nothing,
        is_repeated=True,
    ),
)
