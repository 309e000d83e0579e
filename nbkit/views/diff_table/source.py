"""DiffSource answers the diff table's questions about one trace, in pages of raw JSON data."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from nbkit import units
from nbkit.analysis.query.diff_table import encode_diffs, is_wrong
from nbkit.analysis.query.encoded import Columns, Floats
from nbkit.analysis.query.module_tree import module_tree
from nbkit.numerics.noise_ratio import HARMLESS
from nbkit.schema import DIFFS, MODULES
from nbkit.trace.trace import Trace
from nbkit.views.diff_table.detail import diff_detail
from nbkit.views.diff_table.rows import LABELS, choices, scales, shown_columns
from nbkit.views.sections.diff import verdict_counts
from nbkit.views.summary.names import shown
from nbkit.views.tables.answering import Answer, Message
from nbkit.views.tables.raw import with_short_sources
from nbkit.views.tables.source import TableSource


class DiffSource(TableSource):
    """Answers from the differences of one trace, which it encodes at the first question."""

    table = "diff table"
    noun = "row"
    key = "row"
    bar = "noise_ratio"
    natural = {"sort": [{"column": "rank"}]}

    def __init__(self, trace: Trace) -> None:
        frames = {"diffs": DIFFS.frame(), "modules": MODULES.frame(), **trace.frames, "ops": trace.ops}
        super().__init__(Trace(frames, trace.meta, trace.captured))

    @cached_property
    def columns(self) -> Columns:
        return with_short_sources(encode_diffs(self.trace.diffs, self.trace.ops))

    @cached_property
    def shown_columns(self) -> list[str]:
        return shown_columns(self.columns)

    @cached_property
    def amounts(self) -> Floats:
        """Returns 1 for each row that is mismatched or failed, else 0."""
        return is_wrong(self.columns).astype(np.float64)

    @cached_property
    def tree(self) -> pd.DataFrame:
        """Returns the module tree with compared tensors as its ops, and how many mismatched or failed as its times."""
        ops = self.trace.ops.take(self.trace.diffs["op_id"].to_numpy()).reset_index(drop=True)
        return module_tree(ops.assign(self_time_us=self.amounts), self.trace.modules)

    def overview(self) -> Answer:
        texts = choices(self.columns)
        return {
            "title": "Differences, worst first",
            "incomplete": None,
            "figures": [[status, units.count(count)] for status, count in verdict_counts(self.trace.diffs)],
            "phases": [],
            "counted": "",
            "notes": self._notes(),
            "choices": texts,
            "labels": {name: LABELS[name] for name in texts},
            "scales": scales(self.columns, self.trace.meta.get("threshold")),
            "numbers": list(self.columns.numbers),
            "harmless": list(HARMLESS),
            "n_rows": len(self.columns),
            # An op that is wrong is so in each of its calls: they are one row.
            "group": "equal",
        }

    def kinds(self) -> Mapping[str, Callable[[Message], Answer]]:
        return {
            "detail": lambda message: diff_detail(self.trace, self.known_row(message)),
            "script": self._script,
        }

    def _notes(self) -> list[str]:
        meta = self.trace.meta
        notes = [shown(f"reference: {meta['reference']}")] if "reference" in meta else []
        notes += [f"threshold: {meta['threshold']:g}"] if "threshold" in meta else []
        return [*notes, *captured_note(meta)]

    def _script(self, message: Message) -> Answer:
        # torch writes the inputs; a page that is only written does not ask.
        from nbkit.capture.calls.script import script_of

        script = script_of(self.trace, int(self.trace.diffs["op_id"].iloc[self.known_row(message)]))
        loads = [line for line in script.splitlines() if line.startswith("TENSORS = torch.load(")]
        note = f"Its inputs are in {loads[0].split(chr(39))[1]}." if loads else None
        return {"script": script, "note": note}


def captured_note(meta: Mapping[str, Any]) -> list[str]:
    """Returns what the header says of captured values; nothing where no call was wrong."""
    captured = meta.get("captured")
    if not captured or not captured["calls"]:
        return []
    size = units.data_size(captured["size_bytes"])
    return [f"values of {units.counted(captured['calls'], 'call')} captured ({size}; keep=0 captures none)"]
