"""The diffs frame from the judge's rows."""

from typing import Any

import numpy as np
import pandas as pd

from nbkit.capture.diff.options import PHASES
from nbkit.capture.raw.recording import OP_FIELDS
from nbkit.numerics.precision import Array
from nbkit.schema import DIFFS
from nbkit.schema.message import message_values

FROM_OPS = ["op", "module", "phase"]


def diffs_frame(rows: list[dict[str, Any]], op_ids: Array, ops: pd.DataFrame, phases: frozenset[str]) -> pd.DataFrame:
    """One row per compared tensor of the ops that are in `ops` and in one of the phases, in call order.

    `op_ids` holds one for every slot of Recording.ops, -1 where the op is not in `ops`.
    """
    ids = (
        op_ids[np.array([row["slot"] for row in rows], dtype=np.int64) // OP_FIELDS] if rows else np.zeros(0, np.int64)
    )
    wanted = ids >= 0
    if not phases.issuperset(PHASES):
        wanted[wanted] = ops["phase"].isin(phases).to_numpy()[ids[wanted]]
    ids = ids[wanted]
    chosen = [row for row, is_wanted in zip(rows, wanted.tolist(), strict=True) if is_wanted]
    chosen = [row | {"message_values": message_values(row.get("message"))} for row in chosen]
    names = [column.name for column in DIFFS.columns if any(column.name in row for row in chosen)]
    frame = DIFFS.frame(
        {
            "op_id": ids,
            **{name: ops[name].array.take(ids) for name in FROM_OPS},
            **{name: [row.get(name) for row in chosen] for name in names if name not in FROM_OPS},
        }
    )
    if frame["op_id"].is_monotonic_increasing:
        return frame
    return frame.take(np.argsort(ids, kind="stable")).reset_index(drop=True)
