"""AlignmentSource answers the alignment table's questions about one trace, in pages of raw JSON data."""

from collections.abc import Callable, Mapping
from functools import cached_property

import numpy as np
import pandas as pd

from nbkit import units
from nbkit.analysis.query.encoded import Columns, Floats
from nbkit.analysis.query.module_tree import module_tree
from nbkit.schema import ALIGNMENT, MODULES, OPS
from nbkit.trace.trace import Trace
from nbkit.views.alignment.columns import (
    BAR,
    CHOICES,
    ROW,
    choices,
    differing,
    encode_alignment,
    scales,
    shown_columns,
    table_overview,
)
from nbkit.views.alignment.detail import alignment_detail
from nbkit.views.alignment.verdicts import HARMLESS, SIDES, counts_of, first_row, place_of, rows_of, side_names
from nbkit.views.sections.alignment import MARKS
from nbkit.views.summary.facts import facts
from nbkit.views.summary.names import shown
from nbkit.views.tables.answering import Answer, Message
from nbkit.views.tables.raw import with_short_sources
from nbkit.views.tables.source import TableSource


class AlignmentSource(TableSource):
    """Answers from the alignment of one trace, which it encodes at the first question."""

    table = "alignment table"
    noun = "row"
    key = "row"
    bar = BAR
    natural = {"sort": [{"column": ROW}]}

    def __init__(self, trace: Trace) -> None:
        super().__init__(Trace({"alignment": ALIGNMENT.frame(), **trace.frames}, trace.meta, trace.captured))

    @cached_property
    def columns(self) -> Columns:
        return with_short_sources(encode_alignment(self.trace))

    @cached_property
    def shown_columns(self) -> list[str]:
        return shown_columns(self.columns)

    @cached_property
    def amounts(self) -> Floats:
        """Returns 1 for each row that both sides have and whose values do not agree, else 0."""
        return differing(self.columns).astype(np.float64)

    @cached_property
    def tree(self) -> pd.DataFrame:
        """Returns the module tree with the rows as its ops, and how many of them differ as its times."""
        rows = rows_of(self.trace)
        empty, count = OPS.frame(), len(rows)
        ops = empty.reindex(range(count)).assign(
            op_id=np.arange(count), module=rows["module"], self_time_us=self.amounts
        )
        known = {column.name: column.pandas_dtype for column in OPS.columns}
        filled = {name: 0 for name, dtype in known.items() if dtype in ("int64", "bool")}
        ops = ops.fillna(filled).astype(known).reset_index(drop=True)
        return module_tree(ops, self.trace.frames.get("modules", MODULES.frame()))

    def overview(self) -> Answer:
        texts, counts = choices(self.columns), counts_of(self.trace)
        return {
            **table_overview(),
            "title": " against ".join(map(shown, side_names(self.trace))),
            "incomplete": facts(self.trace).incomplete,
            "figures": [[name, units.count(counts[mark])] for mark, name in MARKS.items()],
            "phases": [],
            "counted": "",
            "notes": list(facts(self.trace).notes),
            "choices": texts,
            "labels": {name: CHOICES[name] for name in texts},
            "scales": scales(self.columns),
            "numbers": list(self.columns.numbers),
            "harmless": list(HARMLESS),
            "n_rows": len(self.columns),
            "first": self._first(),
        }

    def kinds(self) -> Mapping[str, Callable[[Message], Answer]]:
        return {"detail": lambda message: alignment_detail(self.trace, self.known_row(message))}

    def _first(self) -> Answer | None:
        """Returns the row in which both diverge first, and what it is called; null where they do not."""
        row = first_row(self.trace)
        if row is None:
            return None
        values = rows_of(self.trace).iloc[row]
        names = dict.fromkeys(shown(place_of(values, side), 60) for side in SIDES)
        return {"row": row, "label": "First divergence", "title": f"Row {row}: {' ↔ '.join(names)}"}
