"""OpSource answers the op table's questions about one trace, in pages of raw JSON data."""

from collections.abc import Callable, Mapping
from functools import cached_property

import numpy as np
import pandas as pd

from nbkit import units
from nbkit.analysis.query.encoded import Columns, Floats
from nbkit.analysis.query.matches import Ids
from nbkit.analysis.query.module_tree import module_tree
from nbkit.analysis.query.op_table import OUTPUT, SOURCE_TEXT, encode
from nbkit.findings.finding import line_texts
from nbkit.schema import MODULES, TENSORS
from nbkit.timeline.nesting import depths
from nbkit.trace.trace import Trace
from nbkit.views.op_table.cost_columns import BAR, TIMES, Costs, costs_in, with_costs
from nbkit.views.op_table.detail import detail
from nbkit.views.op_table.time_columns import IQR_US, MIN_US, SHARE, SLOW, time_fields, with_times
from nbkit.views.summary.facts import facts
from nbkit.views.summary.names import shown
from nbkit.views.tables.answering import Answer, Message
from nbkit.views.tables.raw import with_short_sources
from nbkit.views.tables.source import TableSource

ORDER = (
    "op_id", "op", "level", "self_time_us", SHARE, IQR_US, MIN_US, SLOW, "self_device_time_us", "model",
    "module", "phase", "status", OUTPUT, "input_shapes", "own_source", "source", SOURCE_TEXT, "total_time_us",
    "total_device_time_us", "start_us", "flops", "size_bytes", "group", "step", "device", "stream", "thread",
)  # fmt: skip
SHOWN_IF_VARIED = ("model", "flops", "step", "device", "stream", "thread")
SHOWN_IF_KNOWN = (
    OUTPUT, "status", "own_source", "source", SOURCE_TEXT, "input_shapes", "self_device_time_us",
    "total_device_time_us", "size_bytes", "group", "predicted_us", SHARE, IQR_US, MIN_US, SLOW,
)  # fmt: skip
# The names of two levels tell them apart: torch.add is an API call, aten.add.Tensor is not.
MANY_LEVELS = 3


class OpSource(TableSource):
    """Answers from the ops of one trace, which it encodes at the first question.

    Those of opcost, and the nodes of cost_table, have their costs.
    """

    table = "op table"
    noun = "op"
    key = "op_id"

    def __init__(self, trace: Trace) -> None:
        frames = {"tensors": TENSORS.frame(), "modules": MODULES.frame(), **trace.frames, "ops": trace.ops}
        super().__init__(Trace(frames, trace.meta, trace.captured))
        self.costs = costs_in(trace)
        self.bar = BAR if self.costs else "self_time_us"

    @cached_property
    def columns(self) -> Columns:
        frames = self.trace.frames
        columns = encode(frames["ops"], frames["tensors"], line_texts(frames.get("lines")))
        columns = with_short_sources(columns)
        if self.costs:
            return with_costs(columns, self.costs.numbers(self.trace))
        return with_times(columns, self.trace)

    @cached_property
    def shown_columns(self) -> list[str]:
        return shown_columns(self.columns, self.costs)

    @cached_property
    def depth(self) -> Ids:
        return depths(self.trace.ops["parent_id"].to_numpy(np.int64, na_value=-1))

    @cached_property
    def tree(self) -> pd.DataFrame:
        return module_tree(self.trace.ops.assign(self_time_us=self.amounts), self.trace.frames["modules"])

    @cached_property
    def amounts(self) -> Floats:
        """Returns self time of each op, 0 for work on a device, which runs beside the host: it would count double.

        Of a table of costs it returns the FLOPs.
        """
        if self.costs:
            return np.nan_to_num(self.columns.numbers[BAR])
        levels = self.columns.texts["level"]
        is_kernel = levels.where((levels.values == "kernel").to_numpy(bool), missing=False)
        return np.where(is_kernel, 0.0, self.columns.numbers["self_time_us"])

    def overview(self) -> Answer:
        known = facts(self.trace)
        return {
            "title": known.title,
            "incomplete": known.incomplete,
            "figures": [list(figure) for figure in known.figures],
            "phases": self.costs.phases(self.trace) if self.costs else self._phases(known.phases, known.counted),
            "counted": known.counted,
            "notes": list(known.notes),
            "levels": [shown(str(level)) for level in self.trace.ops["level"].unique()],
            "n_ops": len(self.trace.ops),
            "libraries": bool(self.trace.ops["own_source"].notna().any()),
            # Of a timed step the first question is where the time went, of a recorded one what ran, of a cost which
            # modules have it, of a model's nodes what each is.
            "group": self.costs.group if self.costs else "op" if self.trace.meta.get("verb") == "optime" else "",
            **({"cost": self.costs.overview()} if self.costs else {}),
        }

    def _phases(self, totals: pd.DataFrame, counted: str) -> list[Answer]:
        rows = zip(totals["phase"], totals["calls"], totals["self_time_us"], strict=True)
        return [
            {
                "phase": shown(str(phase)),
                "calls": units.counted(calls, counted[:-1]),
                "time": units.duration(us),
                "us": us,
            }
            for phase, calls, us in rows
        ]

    def kinds(self) -> Mapping[str, Callable[[Message], Answer]]:
        return {"detail": lambda message: self._detail(self.known_row(message))}

    def _detail(self, op_id: int) -> Answer:
        answer = detail(self.trace, op_id)
        more = (self.costs.fields if self.costs else time_fields)(self.columns, op_id)
        return {**answer, "fields": answer["fields"] | more}


def shown_columns(ops: Columns, costs: Costs | None) -> list[str]:
    """Returns the columns to show, in order, without those that are equal or unknown for all ops."""
    if costs is None:
        return [name for name in ORDER if _is_worth_showing(ops, name)]
    order = [name for name in ORDER if name not in (*TIMES, "flops", *costs.shown, *costs.hidden)]
    order[order.index("level") + 1 : 1 + order.index("level")] = costs.shown
    is_shown = {name: _is_known(ops, name) for name in costs.shown if name in ops.texts}
    return [name for name in order if is_shown.get(name, _is_worth_showing(ops, name))]


def _is_worth_showing(ops: Columns, column: str) -> bool:
    if column == "level":
        return len(ops.texts[column].values) >= MANY_LEVELS
    if column in SHOWN_IF_KNOWN:
        return _is_known(ops, column)
    return column not in SHOWN_IF_VARIED or _is_varied(ops, column)


def _is_known(ops: Columns, column: str) -> bool:
    if column in ops.texts:
        return len(ops.texts[column].values) > 0
    return column in ops.numbers and not np.isnan(ops.numbers[column]).all()


def _is_varied(ops: Columns, column: str) -> bool:
    if column in ops.texts:
        return len(ops.texts[column].values) > 1
    values = ops.numbers[column]
    return len(values) > 0 and bool((values != values[0]).any() and not np.isnan(values).all())
