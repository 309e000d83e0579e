"""Holds a recorded run for comparison: its aten ops, and what is known of the tensors of each."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from nbkit.divergence.alignment import Call, calls_of
from nbkit.numerics.precision import precision_of
from nbkit.schema import TENSORS
from nbkit.step.decode import cells_in
from nbkit.step.step import Step

COLUMNS = ["tensor_id", "name", "dtype", "shape", "numel"]

TEXTS = ("op", "module", "phase", "source")


class Tensor(NamedTuple):
    """Describes a tensor into or out of an op."""

    storage: int
    tensor_id: int
    name: str | None
    dtype: str
    shape: str
    numel: int
    rms: float
    extent: float  # the largest absolute value
    eps: float  # of its dtype; 0 of integers and bools


class Read(NamedTuple):
    """Holds a tensor of both runs, at the same position of the same op."""

    left: Tensor
    right: Tensor
    error: float  # inf where they have not as many elements
    what: str  # what differs most, in words

    @property
    def eps(self) -> float:
        return max(self.left.eps, self.right.eps)


class Run(NamedTuple):
    """Holds what a run's ops are called and where they are, its calls with tensors, and each row of `tensors`."""

    step: Step
    texts: dict[str, list[Any]]  # by column of ops, in the order of op_id
    arguments: list[Any]  # JSON of those that are no tensors, by op_id
    calls: list[Call]
    tensors: list[Tensor]

    @property
    def table(self) -> pd.DataFrame:
        return self.step.tensors

    def read(self, call: Call) -> list[Tensor]:
        """Returns the tensors that a call reads."""
        return [self.tensors[row] for row in call.inputs]

    def made(self, call: Call) -> list[Tensor]:
        """Returns the tensors that a call returns."""
        return [self.tensors[row] for row in call.outputs]


def run_of(step: Step) -> Run:
    """Returns the run that a step holds."""
    tensors = TENSORS.check(step.tensors)
    eps = {dtype: _eps(dtype) for dtype in tensors["dtype"].unique()}
    rows = zip(step.memory.tolist(), *(cells_in(tensors[name]) for name in COLUMNS), *_sizes(tensors), strict=True)
    made = [
        Tensor(storage, tensor_id, name, dtype, shape, numel, rms, extent, eps[dtype])
        for storage, tensor_id, name, dtype, shape, numel, rms, extent in rows
    ]
    texts = {name: step.ops[name].tolist() for name in TEXTS}
    return Run(step, texts, step.ops["arguments"].tolist(), calls_of(step), made)


def has_values(tensors: pd.DataFrame) -> bool:
    """Returns whether a recording holds statistics of its tensors."""
    return bool(tensors["norm"].notna().any())


def _sizes(tensors: pd.DataFrame) -> tuple[list[float], list[float]]:
    """Returns the rms and the largest absolute value of each tensor; 0 where they are not known."""
    norm, low, high = (tensors[name].to_numpy(np.float64, na_value=np.nan) for name in ("norm", "min", "max"))
    rms = norm / np.sqrt(np.maximum(tensors["numel"].to_numpy(np.int64), 1))
    extent = np.maximum(np.abs(low), np.abs(high))
    return np.where(np.isnan(norm), 0.0, rms).tolist(), np.where(np.isnan(low), 0.0, extent).tolist()


def _eps(dtype: str) -> float:
    precision = precision_of(dtype)
    return precision.eps if precision is not None else 0.0
