"""Chooses the columns of the op table: those that tell rows apart, in order."""

import numpy as np

from nbkit.analysis.query.encoded import Columns
from nbkit.analysis.query.op_table import OUTPUT, SOURCE_TEXT
from nbkit.views.op_table.cost_columns import BAR, SHOWN, TIMES
from nbkit.views.op_table.time_columns import IQR_US, MIN_US, SHARE, SLOW

ORDER = (
    "op_id", "op", "level", "self_time_us", SHARE, IQR_US, MIN_US, SLOW, "self_device_time_us", "model",
    "module", "phase", "status", OUTPUT, "input_shapes", "own_source", "source", SOURCE_TEXT, "total_time_us",
    "total_device_time_us", "start_us", "flops", "size_bytes", "group", "step", "device", "stream", "thread",
)  # fmt: skip
SHOWN_IF_VARIED = ("model", "flops", "step", "device", "stream", "thread")
SHOWN_IF_KNOWN = (
    OUTPUT, "status", "own_source", "source", SOURCE_TEXT, "input_shapes", "self_device_time_us",
    "total_device_time_us", "size_bytes", "group", "predicted_us", SHARE, IQR_US, MIN_US, SLOW,
)  # fmt: skip
# The names of two levels tell them apart: torch.add is an API call, aten.add.Tensor is not.
MANY_LEVELS = 3


def shown_columns(ops: Columns) -> list[str]:
    """Returns the columns to show, in order, without those that are equal or unknown for all ops."""
    order = [name for name in ORDER if name not in (*TIMES, "flops", *SHOWN)] if BAR in ops.numbers else [*ORDER]
    if BAR in ops.numbers:
        order[order.index("level") + 1 : 1 + order.index("level")] = SHOWN
    return [name for name in order if _is_worth_showing(ops, name)]


def _is_worth_showing(ops: Columns, column: str) -> bool:
    if column == "level":
        return len(ops.texts[column].values) >= MANY_LEVELS
    if column in SHOWN_IF_KNOWN:
        return _is_known(ops, column)
    return column not in SHOWN_IF_VARIED or _is_varied(ops, column)


def _is_known(ops: Columns, column: str) -> bool:
    if column in ops.texts:
        return len(ops.texts[column].values) > 0
    return column in ops.numbers and not np.isnan(ops.numbers[column]).all()


def _is_varied(ops: Columns, column: str) -> bool:
    if column in ops.texts:
        return len(ops.texts[column].values) > 1
    values = ops.numbers[column]
    return len(values) > 0 and bool((values != values[0]).any() and not np.isnan(values).all())
