"""Makes the op table of an opcost trace a table of costs: columns of numbers for each op, instead of its times.

The times of such a trace are those of a step on shapes, which tell nothing of the step itself.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from nbkit import units
from nbkit.analysis.cost.op_totals import has_costs, op_totals
from nbkit.analysis.query.encoded import Columns, Floats
from nbkit.schema import OPS
from nbkit.trace.trace import Trace
from nbkit.views.op_table import node_columns
from nbkit.views.summary.names import shown

# The column with bars, and what the table adds up.
BAR = "total_flops"
SHOWN = (BAR, "forward_flops", "backward_flops", "size_bytes", "saved_bytes", "params", "predicted_us")
SUMMED = {
    **{name: name for name in ("flops", "forward_flops", "backward_flops", "saved_bytes", "params")},
    "predicted_us": "time_us",
    "size_bytes": "moved_bytes",
    BAR: "flops",
}
# How the table shows the columns that only costs have: label, width, what it holds, and as which column it has bars.
LOOKS = {
    BAR: ("FLOPs", 104, "flops", "self_time_us"),
    "forward_flops": ("forward", 96, "flops"),
    "backward_flops": ("backward", 96, "flops"),
    "saved_bytes": ("saved", 84, "bytes"),
    "params": ("parameters", 112, "whole"),
    "predicted_us": ("predicted", 92, "time"),
}
# The ways to group ops by what they cost, which is added up.
WAYS = {
    "op": ("op", ["op"]),
    "shape": ("op + shape", ["op", "input_shapes"]),
    "module": ("module", ["location", "model"]),
    "layer": ("layer", ["layer", "model"]),
    "source": ("source line", ["source"]),
}
TIMES = tuple(column.name for column in OPS.columns if column.name.endswith("_us"))


def cost_numbers(trace: Trace) -> dict[str, Floats]:
    """Returns the columns of costs, a number per row of `ops`, NaN where an op has none; times are all NaN."""
    totals, count = op_totals(trace), len(trace.ops)
    sums = totals.groupby("op_id")[[*set(SUMMED.values())]].sum(min_count=1).reindex(range(count))
    numbers = {name: sums[column].to_numpy(np.float64) for name, column in SUMMED.items()}
    return {**{name: np.full(count, np.nan) for name in TIMES}, **numbers}


def with_costs(columns: Columns, numbers: Mapping[str, Floats]) -> Columns:
    """Returns the columns of the ops with those of costs."""
    return Columns(len(columns), columns.texts, {**columns.numbers, **numbers})


def cost_phases(trace: Trace) -> list[dict[str, Any]]:
    """Returns what the header says of each phase: its aten ops and their FLOPs; nothing of a step that stopped."""
    if not trace.complete:
        return []
    phases = op_totals(trace).groupby("phase", sort=False)["flops"].agg(["size", "sum"])
    return [
        {"phase": shown(str(phase)), "calls": units.counted(calls, "aten op"), "time": units.flops(flops), "us": flops}
        for phase, calls, flops in zip(phases.index, phases["size"], phases["sum"], strict=True)
    ]


@dataclass(frozen=True)
class Costs:
    """Says which columns of costs a table has, how they look, how rows are grouped, and how it opens."""

    shown: Sequence[str]
    looks: Mapping[str, Sequence[object]]
    ways: Mapping[str, tuple[str, list[str]]]
    summed: Sequence[str]
    numbers: Callable[[Trace], dict[str, Floats]]
    phases: Callable[[Trace], list[dict[str, Any]]]
    group: str = ""
    hidden: Sequence[str] = ()

    def overview(self) -> dict[str, Any]:
        """Returns what the front end has to know of a table of costs."""
        totals = dict.fromkeys(self.summed, "sum")
        sort = [{"column": name, "descending": True} for name in (BAR, *self.summed[-1:])]
        ways = {
            name: {"label": label, "sort": sort, "group": {"by": by, "totals": totals}}
            for name, (label, by) in self.ways.items()
        }
        return {"bar": BAR, "looks": {name: list(look) for name, look in self.looks.items()}, "ways": ways}

    def fields(self, columns: Columns, op_id: int) -> dict[str, float | None]:
        """Returns the costs of one row for its detail."""
        names = [name for name in ("flops", *self.shown, *TIMES) if name in columns.numbers]
        values = {name: float(columns.numbers[name][op_id]) for name in names}
        return {name: None if pd.isna(value) else value for name, value in values.items()}


OP_COSTS = Costs(
    SHOWN,
    LOOKS,
    WAYS,
    (*(name for name in SHOWN if name != "size_bytes"), "size_bytes"),
    cost_numbers,
    cost_phases,
    "layer",
)
NODES = Costs(
    node_columns.SHOWN,
    node_columns.LOOKS,
    node_columns.WAYS,
    node_columns.SUMMED,
    node_columns.node_numbers,
    lambda trace: [],
    hidden=("phase",),
)


def costs_in(trace: Trace) -> Costs | None:
    """Returns the columns of costs of a trace of opcost or cost_table; None for a trace of times."""
    return NODES if "node_costs" in trace.frames else OP_COSTS if has_costs(trace) else None
