"""opcost says what a step costs before it runs. Its trace shows that above what optrace shows."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from nbkit.trace.trace import Trace
from nbkit.verbs.verb import Recorder, Verb
from nbkit.views.ops_view import led_by, op_charts
from nbkit.views.plots import draw_memory
from nbkit.views.sections.cost import cost_sections


def _function() -> Callable[..., Any]:
    from nbkit.capture.cost.opcost import opcost

    return opcost


def _charts(trace: Trace) -> list[Any]:
    return [draw_memory(trace), *op_charts(trace)]


OPCOST = Verb(
    "opcost",
    view=replace(led_by(cost_sections), charts=_charts),
    recorder=Recorder(
        function=_function,
        summary="count FLOPs and memory of a step without running it",
        description="Count what this cell would cost, without running it: FLOPs and bytes of each op, memory over "
        "time, what is saved for the backward pass. The cell runs on shapes alone.",
        notes="Tensors that the cell makes have no values afterwards. Models, gradients and optimizers from before are "
        "left as they were.",
    ),
)
