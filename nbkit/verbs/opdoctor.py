"""opdoctor finds all that is wrong with a step. Its trace is shown as the brief, the flame graph and the op table."""

from dataclasses import replace
from typing import Any

from nbkit.trace.trace import Trace
from nbkit.verbs.verb import Recorder, Verb
from nbkit.views.flamegraph.panel import flame_panel
from nbkit.views.flamegraph.svg import flame_svg
from nbkit.views.op_table.report_data import op_panel
from nbkit.views.ops_view import OPS_VIEW, op_charts, widget_named
from nbkit.views.plots import draw_memory


def _charts(trace: Trace) -> list[Any]:
    return [*op_charts(trace), *([draw_memory(trace)] if len(trace.frames.get("memory", ())) else [])]


OPDOCTOR = Verb(
    "opdoctor",
    view=replace(
        OPS_VIEW,
        widget=widget_named("flame_and_ops"),
        charts=_charts,
        picture=flame_svg,
        panels=lambda contents: [flame_panel(contents), op_panel(contents)],
    ),
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
