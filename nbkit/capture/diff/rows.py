"""The diffs frame from the judge's rows and those of the native part."""

from typing import Any

import numpy as np
import pandas as pd

from nbkit.capture.diff.native_rows import NativeRows
from nbkit.capture.diff.options import PHASES
from nbkit.capture.recorder.recording import OP_FIELDS
from nbkit.numerics.precision import Array
from nbkit.schema import DIFFS

FROM_OPS = ["op", "module", "phase"]


def diffs_frame(
    rows: list[dict[str, Any]], native: NativeRows | None, op_ids: Array, ops: pd.DataFrame, phases: frozenset[str]
) -> pd.DataFrame:
    """One row per compared tensor of the ops that are in `ops` and in one of the phases, in call order.

    `op_ids` holds one for every slot of Recording.ops, -1 where the op is not in `ops`.
    """
    names = [column.name for column in DIFFS.columns if any(column.name in row for row in rows)]
    slots = np.array([row["slot"] for row in rows], dtype=np.int64)
    parts = []
    if native is not None and len(native.slots):
        parts.append(_part(native.slots, native.columns, op_ids, ops, phases))
    if rows or not parts:
        parts.insert(0, _part(slots, {name: [row.get(name) for row in rows] for name in names}, op_ids, ops, phases))
    filled = [part for part in parts if len(part)] or parts[:1]
    if len(filled) == 1 and filled[0]["op_id"].is_monotonic_increasing:
        return filled[0]
    frame = pd.concat(filled)
    return frame.take(np.argsort(frame["op_id"].to_numpy(), kind="stable")).reset_index(drop=True)


def _part(
    slots: Array, columns: dict[str, Any], op_ids: Array, ops: pd.DataFrame, phases: frozenset[str]
) -> pd.DataFrame:
    ids = op_ids[slots // OP_FIELDS] if len(slots) else slots
    wanted = ids >= 0
    if not phases.issuperset(PHASES):
        wanted[wanted] = ops["phase"].isin(phases).to_numpy()[ids[wanted]]
    ids = _chosen(ids, wanted)
    return DIFFS.frame(
        {
            "op_id": ids,
            **{name: ops[name].array.take(ids) for name in FROM_OPS},
            **{name: _chosen(values, wanted) for name, values in columns.items() if name not in FROM_OPS},
        }
    )


def _chosen(values: Any, wanted: Array) -> Any:
    if wanted.all():
        return values
    if not isinstance(values, list):
        return values[wanted]
    return [value for value, is_wanted in zip(values, wanted.tolist(), strict=True) if is_wanted]
