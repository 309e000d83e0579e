"""Rows of the op table for a front end: which columns tell rows apart, and their cells as text."""

from collections.abc import Callable, Iterable

import numpy as np

from nbkit.analysis.query.encoded import OUTPUT, EncodedOps
from nbkit.views.summary import units
from nbkit.views.summary.names import ROOT, shown

ORDER = (
    "op_id", "op", "level", "self_time_us", "self_device_time_us", "model", "module", "phase", OUTPUT, "input_shapes",
    "source", "total_time_us", "total_device_time_us", "start_us", "flops", "size_bytes", "group", "step", "device",
    "stream", "thread",
)  # fmt: skip
SHOWN_IF_VARIED = ("model", "flops", "step", "device", "stream", "thread")
SHOWN_IF_KNOWN = (
    OUTPUT,
    "source",
    "input_shapes",
    "self_device_time_us",
    "total_device_time_us",
    "size_bytes",
    "group",
)
# The names of two levels tell them apart: torch.add is an API call, aten.add.Tensor is not.
MANY_LEVELS = 3
FORMATS: dict[str, Callable[[float], str]] = {
    "self_time_us": units.duration,
    "total_time_us": units.duration,
    "start_us": units.duration,
    "self_device_time_us": units.duration,
    "total_device_time_us": units.duration,
    "flops": units.flops,
    "size_bytes": units.data_size,
}
Row = list[int | float | str | None]


def shown_columns(ops: EncodedOps) -> list[str]:
    """The columns to show, in order; what is the same for every op, or not known of any, is left out."""
    return [name for name in ORDER if _is_worth_showing(ops, name)]


def slowest_of_levels(ops: EncodedOps) -> list[float]:
    """The longest self time of each level, by the level's code; 1 where there is none."""
    levels, self_time_us = ops.texts["level"], ops.numbers["self_time_us"]
    times = [self_time_us[levels.codes == code] for code in range(len(levels.values))]
    return [float(np.nanmax(time_us, initial=0.0)) or 1.0 for time_us in times]


def rows(ops: EncodedOps, ids: Iterable[int], columns: list[str], slowest: list[float]) -> list[Row]:
    """Per op: its id, nesting depth, self time as a fraction of the slowest of its level, then its cells.

    Levels are not compared: the self time of an API call is Python's, and would dwarf every op below it.
    """
    self_time_us, levels = ops.numbers["self_time_us"], ops.texts["level"].codes
    bars = [float(round(self_time_us[op_id] / slowest[levels[op_id]], 4)) for op_id in ids]
    cells = [[cell(ops, op_id, column) for column in columns] for op_id in ids]
    return [
        [int(op_id), int(ops.depth[op_id]), None if units.is_null(bar) else bar, *texts]
        for op_id, bar, texts in zip(ids, bars, cells, strict=True)
    ]


def cell(ops: EncodedOps, op_id: int, column: str) -> str | None:
    """One cell as text; None where the value is missing."""
    if column in ops.texts:
        text = ops.texts[column].text_at(op_id)
        return ROOT if column == "module" and text == "" else None if text is None else shown(text)
    value = float(ops.numbers[column][op_id])
    return None if np.isnan(value) else FORMATS.get(column, _whole)(value)


def _whole(value: float) -> str:
    # Ids go without separators: they are names, and are typed into filters.
    return str(int(value))


def _is_worth_showing(ops: EncodedOps, column: str) -> bool:
    if column == "level":
        return len(ops.texts[column].values) >= MANY_LEVELS
    if column in SHOWN_IF_KNOWN:
        return _is_known(ops, column)
    return column not in SHOWN_IF_VARIED or _is_varied(ops, column)


def _is_known(ops: EncodedOps, column: str) -> bool:
    return len(ops.texts[column].values) > 0 if column in ops.texts else not np.isnan(ops.numbers[column]).all()


def _is_varied(ops: EncodedOps, column: str) -> bool:
    if column in ops.texts:
        return len(ops.texts[column].values) > 1
    values = ops.numbers[column]
    return len(values) > 0 and bool((values != values[0]).any() and not np.isnan(values).all())
