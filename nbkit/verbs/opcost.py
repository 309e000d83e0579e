"""opcost says what a step costs before it runs. Its trace shows that above what optrace shows."""

from dataclasses import replace
from typing import Any

from nbkit.analysis.cost.op_totals import has_times, has_whole_costs
from nbkit.trace.trace import Trace
from nbkit.verbs.verb import Recorder, Verb
from nbkit.views.op_table.report_data import cost_panel
from nbkit.views.ops_view import led_by
from nbkit.views.plots import draw_cost, draw_roofline
from nbkit.views.plots.cost import cost_pictures, memory_picture
from nbkit.views.sections.cost import cost_sections, costliest_calls
from nbkit.views.statements.cost import cost_statements
from nbkit.views.static_html.view import no_outcome


def _charts(trace: Trace) -> list[Any]:
    if not has_whole_costs(trace):
        return []
    return [draw_cost(trace, "moved_bytes"), *([draw_roofline(trace)] if has_times(trace) else [])]


OPCOST = Verb(
    "opcost",
    # The times of a step on shapes say nothing of the step: where its ops' costs are known, they are shown instead.
    view=replace(
        led_by(cost_sections, memory_picture),
        sections=cost_sections,
        charts=_charts,
        drawing=cost_pictures,
        calls=costliest_calls,
        panels=lambda contents: [cost_panel(contents)],
        totals=no_outcome,
        statements=cost_statements,
    ),
    recorder=Recorder(
        home="nbkit.capture.cost.opcost:opcost",
        summary="count FLOPs and memory of a step without running it",
        description="Count what this cell would cost, without running it: FLOPs and bytes of each op, memory over "
        "time, what is saved for the backward pass. The cell runs on shapes alone.",
        notes="Tensors that the cell makes have no values afterwards. Models, gradients and optimizers from before are "
        "left as they were.",
    ),
)
