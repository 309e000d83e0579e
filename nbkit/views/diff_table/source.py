"""DiffSource: answers the diff table's questions about one trace, in pages of JSON data."""

import json
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from nbkit.analysis.query.diff_table import DiffQuery, diff_query, encode_diffs, is_wrong
from nbkit.analysis.query.encoded import EncodedOps, Floats
from nbkit.analysis.query.module_tree import module_tree
from nbkit.analysis.query.op_table import Matches
from nbkit.errors import OptionError
from nbkit.schema import DIFFS, MODULES
from nbkit.trace.trace import Trace
from nbkit.views.diff_table.detail import diff_detail
from nbkit.views.diff_table.rows import LABELS, bars, choices, number_columns, scales, shown_columns, table_rows
from nbkit.views.sections.diff import verdict_counts
from nbkit.views.summary import units
from nbkit.views.summary.names import shown
from nbkit.views.tables.module_rows import own_name
from nbkit.views.tables.source import PAGE_MODULES, Answer, Message, TableSource, page_of, within_bytes


class DiffSource(TableSource):
    """The differences of one trace, encoded at the first question."""

    table = "diff table"

    def __init__(self, trace: Trace) -> None:
        frames = {"diffs": DIFFS.frame(), "modules": MODULES.frame(), **trace.frames, "ops": trace.ops}
        super().__init__(Trace(frames, trace.meta, trace.captured))

    @cached_property
    def rows(self) -> EncodedOps:
        return encode_diffs(self.trace.diffs, self.trace.ops)

    @cached_property
    def bars(self) -> Floats:
        return bars(self.rows)

    @cached_property
    def tree(self) -> pd.DataFrame:
        """The module tree with compared tensors as its ops, and in place of times how many of them are wrong."""
        ops = self.trace.ops.take(self.trace.diffs["op_id"].to_numpy()).reset_index(drop=True)
        return module_tree(ops.assign(self_time_us=is_wrong(self.rows).astype(np.float64)), self.trace.modules)

    def overview(self) -> Answer:
        """What the header and the tool line show; small, as it is synced with the front end."""
        given = choices(self.rows)
        return {
            "title": "Differences, the worst first",
            "incomplete": None,
            "figures": [[status, units.count(count)] for status, count in verdict_counts(self.trace.diffs)],
            "phases": [],
            "counted": "",
            "notes": self._notes(),
            "choices": given,
            "labels": {name: LABELS[name] for name in given},
            "scales": scales(self.rows),
            "numbers": number_columns(self.rows),
            "n_rows": len(self.rows),
        }

    def kinds(self) -> Mapping[str, Callable[[Message], Answer]]:
        return {
            "rows": self._rows,
            "detail": lambda asked: diff_detail(self.trace, self._known_row(asked)),
            "modules": self._modules,
            "position": self._position,
            "script": self._script,
        }

    def _notes(self) -> list[str]:
        meta = self.trace.meta
        notes = [shown(f"reference: {meta['reference']}")] if "reference" in meta else []
        notes += [f"threshold: {meta['threshold']:g}"] if "threshold" in meta else []
        return [*notes, *captured_note(meta)]

    def _rows(self, message: Message) -> Answer:
        matches, place = self.matches_of(message), page_of(message)
        columns = shown_columns(self.rows)
        page = table_rows(self.rows, matches.ids[place].tolist(), columns, self.bars)
        return {
            "matched": len(matches.ids),
            "wrong": units.count(int(is_wrong(self.rows)[matches.ids].sum())),
            "columns": columns,
            "errors": dict(matches.errors),
            "offset": place.start,
            "rows": within_bytes(page),
        }

    def _position(self, message: Message) -> Answer:
        """Where a row stands in the matches of a query; null where it is not among them."""
        row = self._known_row(message)
        return {"row": row, "position": self.position_of(row, message)}

    def _modules(self, message: Message) -> Answer:
        """A page of the module tree, and what is outside any module."""
        place = page_of(message, PAGE_MODULES)
        page = self.tree.iloc[place]
        total = float(is_wrong(self.rows).sum())
        is_outside = self.rows.texts["module"].codes < 0
        names = ["model", "module", "type", "depth", "has_children", "ops_below", "self_time_below_us"]
        columns = [page[name].astype(object).where(page[name].notna(), None).tolist() for name in names]
        rows = [
            [model, module, own_name(model, module), kind and shown(kind), *place, *_totals(count, wrong, total)]
            for model, module, kind, *place, count, wrong in zip(*columns, strict=True)
        ]
        outside = _totals(int(is_outside.sum()), float(is_wrong(self.rows)[is_outside].sum()), total)
        return {"offset": place.start, "total": len(self.tree), "rows": within_bytes(rows), "outside": outside}

    def _script(self, message: Message) -> Answer:
        # torch writes the inputs; a page that is only written does not ask.
        from nbkit.capture.calls.script import script_of

        script = script_of(self.trace, int(self.trace.diffs["op_id"].iloc[self._known_row(message)]))
        loads = [line for line in script.splitlines() if line.startswith("TENSORS = torch.load(")]
        note = f"Its inputs are in {loads[0].split(chr(39))[1]}." if loads else None
        return {"script": script, "note": note}

    def _known_row(self, message: Message) -> int:
        row = int(message["row"])
        if not 0 <= row < len(self.rows):
            raise OptionError(f"There is no row {row}; the last one is {len(self.rows) - 1}.")
        return row

    def _run_query(self, text: str) -> Matches:
        return diff_query(self.rows, DiffQuery(**json.loads(text)))


def captured_note(meta: Mapping[str, Any]) -> list[str]:
    """What the header says of kept values; nothing where no call was wrong."""
    kept = meta.get("captured")
    if not kept or not kept["calls"]:
        return []
    size = units.data_size(kept["size_bytes"])
    return [f"values of {units.counted(kept['calls'], 'call')} kept ({size}; keep=0 keeps none)"]


def _totals(count: int, wrong: float, total: float) -> list[Any]:
    text = f"{int(wrong):,} wrong" if wrong else ""
    return [units.count(count), text, round(wrong / (total or 1.0), 4)]
