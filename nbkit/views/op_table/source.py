"""OpSource answers the op table's questions about one trace, in pages of raw JSON data."""

from collections.abc import Callable, Mapping
from functools import cached_property

import numpy as np
import pandas as pd

from nbkit import units
from nbkit.analysis.query.encoded import Columns, Floats
from nbkit.analysis.query.matches import Ids
from nbkit.analysis.query.module_tree import module_tree
from nbkit.analysis.query.op_table import encode
from nbkit.findings.finding import line_texts
from nbkit.schema import MODULES, TENSORS
from nbkit.timeline.nesting import depths
from nbkit.trace.trace import Trace
from nbkit.views.op_table.detail import detail
from nbkit.views.op_table.rows import shown_columns
from nbkit.views.summary.facts import facts
from nbkit.views.summary.names import shown
from nbkit.views.tables.source import Answer, Message, TableSource


class OpSource(TableSource):
    """Answers from the ops of one trace, which it encodes at the first question."""

    table = "op table"
    noun = "op"
    key = "op_id"
    bar = "self_time_us"

    def __init__(self, trace: Trace) -> None:
        frames = {"tensors": TENSORS.frame(), "modules": MODULES.frame(), **trace.frames, "ops": trace.ops}
        super().__init__(Trace(frames, trace.meta, trace.captured))

    @cached_property
    def columns(self) -> Columns:
        frames = self.trace.frames
        return encode(frames["ops"], frames["tensors"], line_texts(frames.get("lines")))

    @cached_property
    def shown_columns(self) -> list[str]:
        return shown_columns(self.columns)

    @cached_property
    def depth(self) -> Ids:
        return depths(self.trace.ops["parent_id"].to_numpy(np.int64, na_value=-1))

    @cached_property
    def tree(self) -> pd.DataFrame:
        return module_tree(self.trace.ops.assign(self_time_us=self.amounts), self.trace.frames["modules"])

    @cached_property
    def amounts(self) -> Floats:
        """Returns self time of each op, 0 for work on a device, which runs beside the host: it would count double."""
        levels = self.columns.texts["level"]
        is_kernel = levels.where((levels.values == "kernel").to_numpy(bool), missing=False)
        return np.where(is_kernel, 0.0, self.columns.numbers["self_time_us"])

    def overview(self) -> Answer:
        known = facts(self.trace)
        phases = zip(known.phases["phase"], known.phases["calls"], known.phases["self_time_us"], strict=True)
        return {
            "title": known.title,
            "incomplete": known.incomplete,
            "figures": [list(figure) for figure in known.figures],
            "phases": [
                {"phase": shown(str(phase)), "calls": units.count(calls), "time": units.duration(us), "us": us}
                for phase, calls, us in phases
            ],
            "counted": known.counted,
            "notes": list(known.notes),
            "levels": [shown(str(level)) for level in self.trace.ops["level"].unique()],
            "n_ops": len(self.trace.ops),
            # Of a timed step the first question is where the time went, of a recorded one what ran.
            "group": "op" if self.trace.meta.get("verb") == "optime" else "",
        }

    def kinds(self) -> Mapping[str, Callable[[Message], Answer]]:
        return {"detail": lambda message: detail(self.trace, self.known_row(message))}
