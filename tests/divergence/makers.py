"""Makes frames of an opdiff trace beside a shadow run, from literal rows."""

from typing import Any

import pandas as pd

from nbkit.schema import DIFFS
from tests.support.fakes import make_tensors

BASE = {"role": "output", "position": 0, "phase": "forward", "dtype": "float32", "shape": "[2]", "status": "ok"}


def make_diffs(*rows: dict[str, Any]) -> pd.DataFrame:
    """Makes a row for the first output of each op in turn; fills in what a row leaves out (an ok float32 result)."""
    return DIFFS.frame([{"op_id": number, "op": "aten.exp.default", **BASE, **row} for number, row in enumerate(rows)])


def make_chain(length: int) -> pd.DataFrame:
    """Makes tensors of ops each of which reads what the one before it has written; the first reads tensor 0."""
    calls = (((number, "input", number), (number, "output", number + 1)) for number in range(length))
    return make_tensors(*(row for call in calls for row in call))
