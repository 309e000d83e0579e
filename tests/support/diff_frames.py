"""Diffs frames from partial rows, also with the columns that comparing a whole step adds."""

from typing import Any

import pandas as pd

from nbkit.schema import DIFFS, TEXT
from tests.support.fakes import make_ops

BASE = {"op": "aten.mm.default", "phase": "forward", "role": "output", "position": 0, "dtype": "float32"}


def make_diffs(*rows: dict[str, Any]) -> pd.DataFrame:
    """A frame of one row per op; what a row leaves out is filled in (an mm that is right)."""
    filled = [{**BASE, "op_id": op_id, "shape": "[2]", "status": "ok", **row} for op_id, row in enumerate(rows)]
    return DIFFS.frame(filled)


def ops_of(diffs: pd.DataFrame) -> pd.DataFrame:
    """The ops that the rows belong to."""
    return make_ops(*({"op": op, "source": f"step.py:{row}"} for row, op in enumerate(diffs["op"])))


def with_step_columns(diffs: pd.DataFrame) -> pd.DataFrame:
    """The same compared over a whole step: the first row injects an error, the others inherit it."""
    inherited = len(diffs) - 1
    return diffs.assign(
        local_error=[0.5, *[1e-7] * inherited],
        propagated_error=[0.0, *[0.25] * inherited],
        total_error=[0.5, *[0.25] * inherited],
        error_class=pd.array(["local", *["propagated"] * inherited], dtype=TEXT),
        origin_op_id=pd.array([0] * len(diffs), dtype="Int64"),
    )
