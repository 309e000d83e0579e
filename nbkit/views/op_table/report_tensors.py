"""Packs the tensors of a trace for a report: what the detail of an op shows of them, and what links ops."""

from typing import Any

import numpy as np
import pandas as pd

from nbkit.analysis.query.encoded import text_column
from nbkit.views.op_table.detail import STATISTICS, TENSOR_TEXTS
from nbkit.views.panels.pack import Ints, codes, decimals, numbers, scaled, steps, texts
from nbkit.views.panels.rounded import STATISTIC_DIGITS

COUNTS = ("nan_count", "inf_count")
# Statistics take more room than all else: a report holds those of so many tensors.
MOST_STATISTICS = 30_000
NONE, KEPT, LEFT_OUT = range(3)


def tensor_data(tensors: pd.DataFrame) -> dict[str, Any]:
    """Returns the columns of `tensors` by name, statistics only of the rows that have them.

    `has_statistics` is KEPT for those, LEFT_OUT where they were recorded and would be too many: tensors with NaN or Inf
    keep theirs first, then the others in call order.

    `seen` is how many rows ago a tensor was there before, 0 if it was not; `fresh` tells the ids of those, in order, by
    the difference to the one that is due: the ids seen so far have no gap.
    """
    op_id, tensor_id = tensors["op_id"].to_numpy(), tensors["tensor_id"].to_numpy()
    roles = text_column(tensors["role"])
    has_statistics = _with_statistics(tensors)
    kept = tensors[has_statistics == KEPT]
    statistics = {name: kept[name].to_numpy(np.float64, na_value=np.nan) for name in (*STATISTICS, *COUNTS)}
    seen = _rows_since(tensor_id)
    return {
        "count": len(tensors),
        "op_id": steps(op_id),
        "position": scaled(_off_count(op_id, roles.codes, tensors["position"].to_numpy()), 1),
        "seen": codes(seen - 1),
        "fresh": scaled(_off_next(tensor_id, seen == 0), 1),
        "texts": {name: texts(text_column(tensors[name])) for name in TENSOR_TEXTS},
        "size_bytes": numbers(tensors["size_bytes"].to_numpy(np.float64, na_value=np.nan)),
        "requires_grad": codes(tensors["requires_grad"].to_numpy().astype(np.int64)),
        "has_statistics": codes(has_statistics),
        "statistics": {
            name: numbers(values) if name in COUNTS else decimals(values, STATISTIC_DIGITS)
            for name, values in statistics.items()
        },
    }


def _with_statistics(tensors: pd.DataFrame) -> Ints:
    has_statistics = np.where(tensors["nan_count"].notna(), LEFT_OUT, NONE)
    is_bad = (tensors[list(COUNTS)].fillna(0) > 0).any(axis=1).to_numpy()
    order = np.argsort(~is_bad, kind="stable")
    has_statistics[order[has_statistics[order] != NONE][:MOST_STATISTICS]] = KEPT
    return has_statistics


def _rows_since(tensor_id: Ints) -> Ints:
    """Counts for each row how many rows above the same tensor was last; 0 if it was not."""
    order = np.argsort(tensor_id, kind="stable")
    since = np.zeros(len(order), np.int64)
    is_again = tensor_id[order[1:]] == tensor_id[order[:-1]]
    since[order[1:][is_again]] = (order[1:] - order[:-1])[is_again]
    return since


def _off_next(tensor_id: Ints, is_first: Any) -> Ints:
    """Returns the id of each new tensor, less the id that was due: one more than the largest so far."""
    largest = np.maximum.accumulate(np.append(-1, tensor_id))[:-1] if len(tensor_id) else tensor_id
    gaps: Ints = (tensor_id - largest - 1)[is_first]
    return gaps


def _off_count(op_id: Ints, role: Any, position: Ints) -> Ints:
    """Returns each position less the one that was due: that of the row before plus 1, 0 for a new op or role."""
    is_next = np.zeros(len(op_id), bool)
    is_next[1:] = (op_id[1:] == op_id[:-1]) & (role[1:] == role[:-1])
    gaps: Ints = position - np.where(is_next, np.roll(position, 1) + 1, 0)
    return gaps
