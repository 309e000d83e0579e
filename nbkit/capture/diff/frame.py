"""Builds the frame `diffs` from the rows of the judge."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from nbkit.capture.diff.pair import Row
from nbkit.capture.scope.filters import PHASES
from nbkit.numerics.metrics import COUNTS, Metrics
from nbkit.numerics.precision import Array
from nbkit.schema import DIFFS, nullable
from nbkit.schema.message import message_values

FROM_OPS = ["op", "module", "phase"]
MEASURED = ("max_abs_error", "mean_abs_error", "max_rel_error", "cosine_similarity", "max_ulp", "bias_ratio", *COUNTS)


def diffs_frame(
    rows: list[Row], op_ids: Array, ops: pd.DataFrame, phases: frozenset[str], from_ops: Sequence[str] = FROM_OPS
) -> pd.DataFrame:
    """One row per compared tensor of the ops that are in `ops` and in one of the phases, in call order.

    `op_ids` holds one for every slot of Recording.ops, -1 where the op is not in `ops`. The columns `from_ops` are
    those of the op; others come from the row.
    """
    ids = op_ids[np.array([row["slot"] for row in rows], dtype=np.int64)] if rows else np.zeros(0, np.int64)
    wanted = ids >= 0
    if not phases.issuperset(PHASES):
        wanted[wanted] = ops["phase"].isin(phases).to_numpy()[ids[wanted]]
    ids = ids[wanted]
    chosen: list[Row] = [row for row, is_wanted in zip(rows, wanted.tolist(), strict=True) if is_wanted]
    chosen = [row | {"message_values": message_values(row.get("message"))} for row in chosen]
    known = set().union(*chosen) - {"metrics", *from_ops}
    names = [column.name for column in DIFFS.columns if column.name in known]
    frame = DIFFS.frame(
        {
            "op_id": ids,
            **{name: ops[name].array.take(ids) for name in from_ops},
            **{name: [row.get(name) for row in chosen] for name in names},
            **_measured(chosen),
        }
    )
    if frame["op_id"].is_monotonic_increasing:
        return frame
    return frame.take(np.argsort(ids, kind="stable")).reset_index(drop=True)


def _measured(rows: list[Row]) -> dict[str, Any]:
    """The columns that come from the metrics of each pair; null where there are none."""
    has = np.array(["metrics" in row for row in rows], dtype=bool)
    if not has.any():
        return {}
    metrics = Metrics.of_rows(np.array([row["metrics"] for row in rows if "metrics" in row], dtype=np.float64))
    columns: dict[str, Any] = {}
    for name in MEASURED:
        is_count = name in COUNTS
        column = np.full(len(rows), -1 if is_count else np.nan)
        column[has] = getattr(metrics, name)
        columns[name] = nullable(column) if is_count else column
    return columns
