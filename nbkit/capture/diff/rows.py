"""The diffs frame from the judge's rows."""

from typing import Any

import numpy as np
import pandas as pd

from nbkit.schema import DIFFS

FROM_OPS = ["op", "module", "phase"]


def diffs_frame(
    rows: list[dict[str, Any]], op_ids: np.ndarray, ops: pd.DataFrame, phases: frozenset[str]
) -> pd.DataFrame:
    """One row per compared tensor of the ops that are in `ops` and in one of the phases, in call order."""
    kept = np.flatnonzero(op_ids >= 0)
    known = ops[FROM_OPS].iloc[op_ids[kept]].reset_index(drop=True)
    wanted = known["phase"].isin(phases).to_numpy()
    kept, known = kept[wanted], known[wanted]
    chosen = [rows[number] for number in kept]
    columns: dict[str, Any] = {"op_id": op_ids[kept], **{name: known[name].array for name in FROM_OPS}}
    for column in DIFFS.columns:
        if column.name not in columns and any(column.name in row for row in chosen):
            columns[column.name] = [row.get(column.name) for row in chosen]
    frame = DIFFS.frame(columns)
    order = np.argsort(columns["op_id"], kind="stable")
    return frame.take(order).reset_index(drop=True)
