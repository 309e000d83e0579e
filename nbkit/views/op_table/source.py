"""OpSource: answers the op table's questions about one trace, in pages of JSON data."""

import json
from collections.abc import Callable, Mapping
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd

from nbkit.analysis.query.encoded import EncodedOps, encode
from nbkit.analysis.query.module_tree import module_tree
from nbkit.analysis.query.op_table import Matches, OpQuery, query
from nbkit.errors import OptionError
from nbkit.schema import MODULES, TENSORS
from nbkit.trace.trace import Trace
from nbkit.views.op_table.detail import detail
from nbkit.views.op_table.rows import rows, shown_columns, slowest_of_levels
from nbkit.views.summary import units
from nbkit.views.summary.facts import facts
from nbkit.views.summary.names import shown
from nbkit.views.tables.module_rows import module_rows, totals
from nbkit.views.tables.source import PAGE_MODULES, Answer, Message, TableSource, page_of, within_bytes


class OpSource(TableSource):
    """The ops of one trace, encoded at the first question."""

    table = "op table"

    def __init__(self, trace: Trace) -> None:
        frames = {"tensors": TENSORS.frame(), "modules": MODULES.frame(), **trace.frames, "ops": trace.ops}
        super().__init__(Trace(frames, trace.meta, trace.captured))
        self._within: npt.NDArray[np.int64] | None = None
        self.version = 0

    def limit_to(self, op_ids: npt.NDArray[np.int64] | None) -> None:
        """Answer with these ops only from now on; None is all. `version` is new for each limit."""
        self._within = op_ids
        self.version += 1
        self.matches.cache_clear()

    @cached_property
    def ops(self) -> EncodedOps:
        return encode(self.trace.ops, self.trace.tensors)

    @cached_property
    def slowest(self) -> list[float]:
        return slowest_of_levels(self.ops)

    @cached_property
    def tree(self) -> pd.DataFrame:
        return module_tree(self.trace.ops.assign(self_time_us=self.host_self_us), self.trace.frames["modules"])

    @cached_property
    def host_self_us(self) -> npt.NDArray[np.float64]:
        """Self time by op, 0 for work on a device: that runs beside the host, and adding both would count twice."""
        levels = self.ops.texts["level"]
        is_kernel = levels.where((levels.values == "kernel").to_numpy(bool), missing=False)
        return np.where(is_kernel, 0.0, self.ops.numbers["self_time_us"])

    def overview(self) -> Answer:
        """What the header shows; small, as it is synced with the front end."""
        known = facts(self.trace)
        phases = zip(known.phases["phase"], known.phases["calls"], known.phases["self_time_us"], strict=True)
        return {
            "title": known.title,
            "incomplete": known.incomplete,
            "figures": [list(figure) for figure in known.figures],
            "phases": [
                {
                    "phase": shown(str(phase)),
                    "calls": units.count(calls),
                    "time": units.duration(time_us),
                    "us": time_us,
                }
                for phase, calls, time_us in phases
            ],
            "counted": known.counted,
            "notes": list(known.notes),
            "levels": [shown(str(level)) for level in self.trace.ops["level"].unique()],
            "n_ops": len(self.trace.ops),
        }

    def kinds(self) -> Mapping[str, Callable[[Message], Answer]]:
        return {"rows": self._rows, "detail": self._detail, "modules": self._modules, "position": self._position}

    def _rows(self, message: Message) -> Answer:
        matches, place = self.matches_of(message), page_of(message)
        columns = shown_columns(self.ops)
        page = rows(self.ops, matches.ids[place].tolist(), columns, self.slowest)
        time_us = self.host_self_us[matches.ids]
        return {
            "matched": len(matches.ids),
            "self_time": units.duration(float(np.nansum(time_us))),
            "columns": columns,
            "errors": dict(matches.errors),
            "offset": place.start,
            "rows": within_bytes(page),
        }

    def _detail(self, message: Message) -> Answer:
        return detail(self.trace, self._known_op(message))

    def _position(self, message: Message) -> Answer:
        """Where an op stands in the matches of a query; null where it is not among them."""
        op_id = self._known_op(message)
        return {"op_id": op_id, "position": self.position_of(op_id, message)}

    def _modules(self, message: Message) -> Answer:
        """A page of the module tree, and the totals of the ops outside any module."""
        place = page_of(message, PAGE_MODULES)
        self_time_us = self.host_self_us
        is_outside = self.ops.texts["module"].codes < 0
        total_us = float(np.nansum(self_time_us))
        page = module_rows(self.tree.iloc[place], total_us)
        return {
            "offset": place.start,
            "total": len(self.tree),
            "rows": within_bytes(page),
            "outside": totals(int(is_outside.sum()), float(np.nansum(self_time_us[is_outside])), total_us),
        }

    def _known_op(self, message: Message) -> int:
        op_id = int(message["op_id"])
        if not 0 <= op_id < len(self.trace.ops):
            raise OptionError(f"There is no op {op_id}; the last one is {len(self.trace.ops) - 1}.")
        return op_id

    def _run_query(self, text: str) -> Matches:
        return query(self.ops, OpQuery(**json.loads(text)), self._within)
