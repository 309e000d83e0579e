"""OpSource: answers the op table's questions about one trace, in pages of JSON data."""

import json
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from nbkit.analysis.encoded import EncodedOps, encode
from nbkit.analysis.module_tree import module_tree
from nbkit.analysis.op_table import Matches, OpQuery, query
from nbkit.errors import OptionError
from nbkit.schema import MODULES, TENSORS
from nbkit.trace import Trace
from nbkit.views import units
from nbkit.views.facts import facts
from nbkit.views.module_rows import module_rows, totals
from nbkit.views.names import shown
from nbkit.views.op_detail import detail
from nbkit.views.op_rows import rows, shown_columns, slowest_of_levels

PAGE_BYTES = 48_000
PAGE_ROWS = 120
PAGE_MODULES = 400
Answer = dict[str, Any]


class OpSource:
    """One trace, encoded at the first question; keeps the matches of the last few queries, so that paging is free."""

    def __init__(self, trace: Trace) -> None:
        frames = {"tensors": TENSORS.frame(), "modules": MODULES.frame(), **trace.frames}
        self.trace = Trace(frames, trace.meta, trace.kept)
        self._within: npt.NDArray[np.int64] | None = None
        self.version = 0
        self._matches = lru_cache(maxsize=4)(self._run_query)

    def limit_to(self, op_ids: npt.NDArray[np.int64] | None) -> None:
        """Answer with these ops only from now on; None is all. `version` is new for each limit."""
        self._within = op_ids
        self.version += 1
        self._matches.cache_clear()

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

    def answer(self, message: Mapping[str, Any]) -> Answer:
        """The answer to one message of the front end, with its id; kind "error" where it asks for what is not there."""
        kinds = {"rows": self._rows, "detail": self._detail, "modules": self._modules, "position": self._position}
        try:
            if message.get("kind") not in kinds:
                raise OptionError(f"The op table knows no question {message.get('kind')!r}.")
            return {"kind": message["kind"], "id": message.get("id"), **kinds[message["kind"]](message)}
        # A front end that waits for an answer must get one, whatever went wrong.
        except Exception as error:
            return {"kind": "error", "id": message.get("id"), "message": f"{type(error).__name__}: {error}"}

    def _rows(self, message: Mapping[str, Any]) -> Answer:
        matches = self._matches(json.dumps(message.get("query", {}), sort_keys=True))
        offset = max(int(message.get("offset", 0)), 0)
        limit = min(int(message.get("limit", PAGE_ROWS)), PAGE_ROWS)
        columns = shown_columns(self.ops)
        page = rows(self.ops, matches.ids[offset : offset + limit].tolist(), columns, self.slowest)
        time_us = self.host_self_us[matches.ids]
        return {
            "matched": len(matches.ids),
            "self_time": units.duration(float(np.nansum(time_us))),
            "columns": columns,
            "errors": dict(matches.errors),
            "offset": offset,
            "rows": within_bytes(page, PAGE_BYTES),
        }

    def _detail(self, message: Mapping[str, Any]) -> Answer:
        return detail(self.trace, self._known_op(message))

    def _position(self, message: Mapping[str, Any]) -> Answer:
        """Where an op stands in the matches of a query; null where it is not among them."""
        matches = self._matches(json.dumps(message.get("query", {}), sort_keys=True))
        found = np.flatnonzero(matches.ids == self._known_op(message))
        return {"op_id": int(message["op_id"]), "position": int(found[0]) if len(found) else None}

    def _modules(self, message: Mapping[str, Any]) -> Answer:
        """A page of the module tree, and the totals of the ops outside any module."""
        offset = max(int(message.get("offset", 0)), 0)
        self_time_us = self.host_self_us
        is_outside = self.ops.texts["module"].codes < 0
        total_us = float(np.nansum(self_time_us))
        page = module_rows(self.tree.iloc[offset : offset + PAGE_MODULES], total_us)
        return {
            "offset": offset,
            "total": len(self.tree),
            "rows": within_bytes(page, PAGE_BYTES),
            "outside": totals(int(is_outside.sum()), float(np.nansum(self_time_us[is_outside])), total_us),
        }

    def _known_op(self, message: Mapping[str, Any]) -> int:
        op_id = int(message["op_id"])
        if not 0 <= op_id < len(self.trace.ops):
            raise OptionError(f"There is no op {op_id}; the last one is {len(self.trace.ops) - 1}.")
        return op_id

    def _run_query(self, text: str) -> Matches:
        return query(self.ops, OpQuery(**json.loads(text)), self._within)


def within_bytes(page: list[list[Any]], limit_bytes: int) -> list[list[Any]]:
    """The first rows whose JSON stays under the limit, but at least one: the front end asks again for the rest."""
    sizes = np.cumsum([len(json.dumps(row, ensure_ascii=False).encode()) + 1 for row in page], dtype=np.int64)
    return page[: max(int(np.searchsorted(sizes, limit_bytes, side="right")), 1)]
