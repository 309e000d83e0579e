"""Tells for each compared tensor whether its error is local or propagated from its inputs, and from which op.

The error of every memory is kept in two parts: what goes back to rounding, and what goes back to ops at fault, with the
op that most of this comes from. An op mixes the parts of what it reads; what it inherits is divided as they are, and
what it adds itself counts as a fault if its verdict says so, else as rounding. An op at fault is thus told from those
that compute rightly from its wrong result, however large or small its error is.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from nbkit.numerics.noise_ratio import FAULTY
from nbkit.numerics.precision import precision_of
from nbkit.schema import OPS
from nbkit.step.step import Step

# Stands for an error without bound, so that shares of it can be taken.
HUGE = 1e300
Key = tuple[int, str, int]  # an op, role and position of a tensor of it


class ErrorParts(NamedTuple):
    """Splits the error of some memory: from rounding, from ops at fault, and the op behind most of the latter.

    `eps` is that of the coarsest dtype on the way to it.
    """

    rounding: float = 0.0
    fault: float = 0.0
    origin: int | None = None
    eps: float = 0.0

    @property
    def total(self) -> float:
        return self.rounding + self.fault


CLEAN = ErrorParts()


class Row(NamedTuple):
    """Holds what is needed of a row of diffs."""

    number: int
    dtype: str
    is_faulty: bool
    local: float
    propagated: float  # NaN where it has no shadow


class Origin(NamedTuple):
    """Holds the class of a row of diffs, the op at fault that its error goes back to, and its inputs' largest error.

    `eps` is that of the coarsest dtype on the way to its inputs.
    """

    error_class: str | None = None
    origin_op_id: int | None = None
    input_error: float = 0.0
    eps: float = 0.0


def origins(diffs: pd.DataFrame, tensors: pd.DataFrame) -> list[Origin]:
    """Returns the origin of every row of diffs, in their order."""
    rows = _rows_of(diffs)
    classified = [Origin() for _ in range(len(diffs))]
    memory: dict[int, ErrorParts] = {}
    largest: dict[int, int] = {}
    step = Step(OPS.frame(), tensors)
    storages, is_output = step.memory.tolist(), step.is_output.tolist()
    positions, numels = tensors["position"].tolist(), tensors["numel"].tolist()
    for op_id, inputs, outputs in step.calls():
        read_from = {storages[at] for at in inputs}
        read = _mixed([memory[storage] for storage in read_from if storage in memory])
        for at in (*inputs, *outputs):
            storage = storages[at]
            row = rows.get((op_id, "output" if is_output[at] else "input", positions[at]))
            if row is not None:
                classified[row.number], part = _classified(row, read, op_id)
            elif is_output[at] and storage not in read_from:
                part = read  # not compared: nothing is added
            else:
                continue  # only read, or a view
            is_whole = numels[at] >= largest.get(storage, 0)
            memory[storage] = part if is_whole else _mixed([part, memory.get(storage, CLEAN)])
            largest[storage] = max(numels[at], largest.get(storage, 0))
    return classified


def _rows_of(diffs: pd.DataFrame) -> dict[Key, Row]:
    columns = ["op_id", "role", "position", "dtype", "status", "local_error", "propagated_error"]
    lists = [diffs[name].tolist() for name in columns]
    rows = {}
    for number, (op_id, role, position, dtype, status, local, propagated) in enumerate(zip(*lists, strict=True)):
        own = HUGE if np.isnan(local) else min(local, HUGE)
        rows[op_id, role, position] = Row(number, str(dtype), status in FAULTY, own, min(propagated, HUGE))
    return rows


def _mixed(parts: list[ErrorParts]) -> ErrorParts:
    worst = max(parts, key=lambda part: part.fault, default=CLEAN)
    rounding = max((part.rounding for part in parts), default=0.0)
    eps = max((part.eps for part in parts), default=0.0)
    return ErrorParts(min(rounding, HUGE), min(worst.fault, HUGE), worst.origin, eps)


def _classified(row: Row, read: ErrorParts, op_id: int) -> tuple[Origin, ErrorParts]:
    """Returns the origin of a row whose op has read memory with these errors, and the error of what it has written."""
    share = read.fault / read.total if read.total else 0.0
    propagated = 0.0 if np.isnan(row.propagated) else row.propagated
    from_faults, from_rounding = share * propagated, (1 - share) * propagated
    precision = precision_of(row.dtype)
    if row.is_faulty:
        is_propagated = from_faults > max(from_rounding, precision.eps if precision else 0.0)
        part = ErrorParts(from_rounding, from_faults + row.local, op_id if row.local >= from_faults else read.origin)
        name = "both" if is_propagated else "local"
    else:
        part = ErrorParts(from_rounding + row.local, from_faults, read.origin)
        name = "propagated" if from_faults > part.rounding else "clean"
        if np.isnan(row.propagated):
            return Origin(input_error=read.total, eps=read.eps), CLEAN  # its shadow began anew
    part = part._replace(eps=max(read.eps, precision.eps if precision else 0.0))
    origin = Origin(name, None if name == "clean" else part.origin, read.total, read.eps)
    # Integers and bools are the step's own in the shadow: what comes after them inherits nothing by them.
    return origin, part if precision or row.is_faulty else CLEAN
