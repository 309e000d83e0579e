"""Where a NaN, an Inf or a result without precision begins: at the op whose inputs do not explain it."""

from dataclasses import dataclass, field
from functools import cache
from math import isfinite, isinf, isnan
from typing import Any

import torch
from torch import Tensor

from nbkit.capture.check.values import (
    counts,
    element_text,
    first_place,
    largest,
    number_text,
    range_text,
    smallest_normal,
    values_of,
)
from nbkit.capture.rerun.copies import all_tensors
from nbkit.capture.rerun.plans import Plan
from nbkit.capture.rerun.reference import NoKernelError, Reference


@cache
def exact() -> Reference:
    """What results are held against: made at first use, since it tries the device."""
    return Reference("cpu:float64")


@dataclass
class Finding:
    """One op that goes wrong by itself, or an input that came in from outside; kinds as in the findings frame."""

    kind: str
    role: str
    position: int
    tensor: Tensor = field(repr=False)
    message: str
    nan_count: int = 0
    inf_count: int = 0
    slot: int = -1  # index into Recording.ops

    def __post_init__(self) -> None:
        self.dtype, self.shape = self.tensor.dtype, self.tensor.shape
        del self.tensor  # nothing of the step is kept alive


def origin_of(
    plan: Plan, args: Any, kwargs: Any, written: list[Tensor], tensor: Tensor, position: int
) -> Finding | None:
    """What began with this result, which holds NaN or Inf; None if the inputs explain it.

    A NaN is explained by a NaN that went in, an Inf by either, a number such as the -inf of a mask included. `written`
    are the inputs that the op has overwritten, which the caller knows to have been finite.
    """
    nans, infs = counts(tensor)
    inputs = [one for one in all_tensors(args, kwargs) if is_float(one) and not any(one is other for other in written)]
    found = [counts(one) for one in inputs]
    numbers = list(_numbers((args, kwargs)))
    had_nan = any(nan for nan, _ in found) or any(map(isnan, numbers))
    had_inf = any(inf for _, inf in found) or any(map(isinf, numbers))
    if had_nan or (had_inf and not nans):
        return None
    values = values_of(tensor)
    bad = torch.isnan(values) if nans else torch.isinf(values)
    place = first_place(bad)
    precise = None if nans or written else _exact(plan, args, kwargs, position)
    overflows = precise is not None and precise.shape == values.shape and bool(torch.isfinite(precise[tuple(place)]))
    kind = "nan" if nans else "overflow" if overflows else "inf"
    what = f"{nans or infs:,} of {values.numel():,} elements {'is' if (nans or infs) == 1 else 'are'} "
    what += "NaN" if nans else "Inf"
    if overflows and precise is not None:
        largest_text = number_text(float(torch.finfo(tensor.dtype).max))
        what += (
            f" where {number_text(precise[tuple(place)].item())} does not fit ({_name(tensor)} ends at {largest_text})"
        )
    message = f"{what}, the first at {place}; {_inputs_text(inputs, numbers, place, values.shape)}"
    return Finding(kind, "output", position, tensor, message, nans, infs)


def underflow_of(plan: Plan, args: Any, kwargs: Any, tensor: Tensor, position: int) -> Finding | None:
    """What began with this result of zeros and subnormal numbers; None if that is what it should hold."""
    if not any(largest(one) > 0 for one in all_tensors(args, kwargs) if is_float(one)):
        return None
    precise = _exact(plan, args, kwargs, position)
    if precise is None or not is_float(precise) or not (0 < largest(precise) < smallest_normal(tensor.dtype)):
        return None
    message = (
        f"no element of {tensor.numel():,} keeps its precision: exact values reach {number_text(largest(precise))}, "
        f"{_name(tensor)} is exact from {number_text(smallest_normal(tensor.dtype))} on, "
        f"and {number_text(largest(tensor))} is what is left"
    )
    return Finding("underflow", "output", position, tensor, message)


def from_outside(tensor: Tensor, position: int) -> Finding:
    """An input that no recorded op made holds NaN or Inf already."""
    nans, infs = counts(tensor)
    message = f"came into the recorded code with {nans:,} NaN and {infs:,} Inf in {tensor.numel():,} elements"
    return Finding("input", "input", position, tensor, message, nans, infs)


def is_float(tensor: Tensor) -> bool:
    """Whether a tensor holds numbers that can fail to be finite."""
    return tensor.is_floating_point() or tensor.is_complex()


def _exact(plan: Plan, args: Any, kwargs: Any, position: int) -> Tensor | None:
    """The result in float64; None for ops that draw numbers or have no such kernel."""
    if plan.is_random or plan.written or plan.written_names:
        return None
    try:
        results = exact().copy(plan, args, kwargs).results().all
    except (NoKernelError, RuntimeError):
        return None
    return results[position] if position < len(results) else None


def _numbers(value: Any) -> Any:
    """The numbers that are not finite among the arguments of a call."""
    if isinstance(value, float):
        if not isfinite(value):
            yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _numbers(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _numbers(one)


def _inputs_text(inputs: list[Tensor], numbers: list[float], place: list[int], shape: torch.Size) -> str:
    """The inputs of that element where they are known, else the range of each."""
    elements = [element_text(one, place, shape) for one in inputs]
    given = [number_text(one) for one in numbers]
    if inputs and None not in elements:
        return f"inputs there: {', '.join([*map(str, elements), *given])}"
    return f"inputs: {'; '.join([*map(range_text, inputs), *given])}" if inputs or given else "it overwrote its input"


def _name(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
