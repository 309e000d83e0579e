"""Describes what of a step another op could do, by its sizes, so that both can be run and timed."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd

from nbkit.step.decode import arguments_of, inputs_in


class Place(NamedTuple):
    """Says what tensors are made of, and whether a backward pass follows."""

    dtype: str  # torch's name without prefix
    device: str
    is_training: bool


@dataclass(frozen=True)
class AttentionCase:
    """Describes attention of (heads, queries, width) over (heads, keys, width), batch and heads in one."""

    heads: int
    queries: int
    keys: int
    width: int
    value_width: int
    is_masked: bool
    has_dropout: bool
    place: Place


@dataclass(frozen=True)
class NormCase:
    """Describes a norm over the last `dims` dimensions, computed in the dtype of `place`, of a tensor in `dtype`."""

    shape: tuple[int, ...]
    dims: int
    is_centred: bool
    dtype: str
    place: Place


@dataclass(frozen=True)
class OptimizerCase:
    """Describes one step of an optimizer, a class of torch.optim, on parameters of these shapes."""

    kind: str
    shapes: tuple[tuple[int, ...], ...]
    place: Place


@dataclass(frozen=True)
class LossCase:
    """Describes a cross entropy of (rows, classes): of a softmax and its log, or a product with one-hot targets."""

    rows: int
    classes: int
    has_log: bool
    is_one_hot: bool
    place: Place


Case = AttentionCase | NormCase | OptimizerCase | LossCase


class Measured(NamedTuple):
    """Holds the fastest alternative of a case, and the fraction of the time that it takes at most."""

    name: str
    fraction: float


class Saving(NamedTuple):
    """Holds what alternatives save of a time at least, as a fraction of it; `name` is the one that saves most."""

    name: str
    fraction: float


# Runs a case and its alternatives; null where they cannot be run.
Measure = Callable[[Case], Measured | None]


def saving(measure: Measure | None, calls: Iterable[tuple[Case | None, float]]) -> Saving | None:
    """Returns what alternatives save of these calls, each with its time; null where none could be run.

    A call that could not be run, or whose alternative is slower, saves nothing.
    """
    times: dict[Case | None, float] = defaultdict(float)
    for case, time_us in calls:
        times[case] += time_us
    by_name: dict[str, float] = defaultdict(float)
    for case, time_us in times.items():
        measured = None if case is None or measure is None else measure(case)
        if measured is not None:
            by_name[measured.name] += time_us * max(1.0 - measured.fraction, 0.0)
    whole = sum(times.values())
    if not by_name or not whole:
        return None
    return Saving(max(by_name, key=lambda name: by_name[name]), sum(by_name.values()) / whole)


class Inputs(NamedTuple):
    """Holds what is known of the inputs of an op."""

    shapes: list[tuple[int, ...]]
    dtypes: list[str | None]
    device: str
    arguments: Mapping[str, object]


def inputs_of(ops: pd.DataFrame, row: int) -> Inputs | None:
    """Returns the inputs of an op; null where its shapes were not recorded, or are lists of tensors."""
    shapes, dtypes = (inputs_in(ops[name].iat[row]) for name in ("input_shapes", "input_dtypes"))
    device = ops["device"].iat[row]
    if shapes is None or dtypes is None or not isinstance(device, str):
        return None
    sizes = [tuple(shape) for shape in shapes]
    if not all(isinstance(size, int) for shape in sizes for size in shape):
        return None
    return Inputs(sizes, dtypes, device, arguments_of(ops["arguments"].iat[row]))


class Subnormal(NamedTuple):
    """Says which part of a state tensor, by its name, is `below` the normal range, and how much slower an op is."""

    name: str
    fraction: float
    below: float
    slowdown: float


# Looks at the state of all optimizers of a type of torch, and runs an op on it; null where no more is known, or little.
Look = Callable[[str, str], Subnormal | None]
