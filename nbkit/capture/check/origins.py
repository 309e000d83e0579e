"""Finds where a NaN, an Inf or a result without precision begins: at the op whose inputs do not explain it."""

from dataclasses import dataclass, field
from functools import cache
from math import isfinite, isinf, isnan
from typing import Any

import torch
from torch import Tensor

from nbkit.capture.check.inputs import inputs_text, numbers_in, read_only
from nbkit.capture.check.values import counts, first_true, is_float, largest, number_text, smallest_normal, values_of
from nbkit.capture.replay.copies import all_tensors
from nbkit.capture.replay.op_traits import OpTraits
from nbkit.capture.replay.reference import NoKernelError, Reference
from nbkit.schema.message import Message, element

# They only put numbers into memory: a NaN among those is there on purpose.
FILLING = frozenset(
    "full full_like new_full fill fill_ masked_fill masked_fill_ index_fill index_fill_ where scalar_tensor "
    "constant_pad_nd".split()
)


@cache
def exact() -> Reference:
    """Returns the reference that results are compared with; made at first use, since it tries the device."""
    return Reference("cpu:float64")


@dataclass
class BadTensor:
    """Describes a tensor that an op made wrong by itself, or that came in wrong; kinds are rules of `findings`."""

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
    traits: OpTraits, args: Any, kwargs: Any, written: list[Tensor], tensor: Tensor, position: int
) -> BadTensor | None:
    """Returns what began with this result, which holds NaN or Inf; None if the inputs explain it.

    A NaN is explained by a NaN that went in, one given to an op that fills memory included; an Inf by either, a number
    such as the -inf of a mask included. `written` are the inputs that the op has overwritten, which the caller knows to
    have been finite.
    """
    nans, infs = counts(tensor)
    non_finite = [counts(tensor) for tensor in read_only(traits, args, kwargs, written) if is_float(tensor)]
    numbers = list(numbers_in((args, kwargs)))
    had_nan = any(nan for nan, _ in non_finite) or (traits.packet in FILLING and any(map(isnan, numbers)))
    had_inf = any(inf for _, inf in non_finite) or any(map(isinf, numbers))
    if had_nan or (had_inf and not nans):
        return None
    values = values_of(tensor)
    indices = first_true(torch.isnan(values) if nans else torch.isinf(values))
    precise = None if nans or written else _exact(traits, args, kwargs, position)
    wide = None if precise is None or precise.shape != values.shape else precise[tuple(indices)].item()
    overflows = wide is not None and isfinite(abs(wide))
    kind = "nan" if nans else "overflow" if overflows else "inf"
    what = "NaN" if nans else "Inf"
    if wide is not None and overflows:
        ends_at = number_text(float(torch.finfo(tensor.dtype).max))
        limit = f" does not fit ({_name(tensor)} ends at {ends_at})"
        what = Message(what, " where ", element(number_text(wide)), limit)
    inputs = inputs_text(traits, args, kwargs, written, position, indices, values.shape)
    message = Message(*_how_many(nans or infs, values, what, indices), inputs)
    return BadTensor(kind, "output", position, tensor, message, nans, infs)


def _how_many(bad: int, values: Tensor, what: str, indices: list[int]) -> tuple[str, ...]:
    """Returns the parts of '3 of 8 elements are NaN, the first at [0, 2]'."""
    if values.numel() == 1:
        return "its only element is ", what
    return f"{bad:,} of {values.numel():,} elements {'is' if bad == 1 else 'are'} ", what, f", the first at {indices}"


def underflow_of(traits: OpTraits, args: Any, kwargs: Any, tensor: Tensor, position: int) -> BadTensor | None:
    """Returns what began with this result of zeros and subnormal numbers; None if that is what it should hold."""
    if not any(largest(source) > 0 for source in all_tensors(args, kwargs) if is_float(source)):
        return None
    precise = _exact(traits, args, kwargs, position)
    if precise is None or not is_float(precise) or not (0 < largest(precise) < smallest_normal(tensor.dtype)):
        return None
    message = Message(
        f"no element of {tensor.numel():,} keeps its precision: exact values reach ",
        element(number_text(largest(precise))),
        f", {_name(tensor)} is exact from {number_text(smallest_normal(tensor.dtype))} on, and ",
        element(number_text(largest(tensor))),
        " is what is left",
    )
    return BadTensor("underflow", "output", position, tensor, message)


def from_outside(tensor: Tensor, position: int) -> BadTensor:
    """Reports an input that no recorded op made and that holds NaN or Inf already."""
    nans, infs = counts(tensor)
    return BadTensor(
        "input", "input", position, tensor, f"came into the recorded code with {_held(tensor, nans, infs)}", nans, infs
    )


def unwritten(tensor: Tensor, position: int) -> BadTensor:
    """Reports an input that holds NaN or Inf though all that the recorded ops wrote to its memory is finite."""
    nans, infs = counts(tensor)
    message = (
        f"holds {_held(tensor, nans, infs)} that no recorded op put there: memory from empty() that was not filled, or "
        f"written to by other code"
    )
    return BadTensor("input", "input", position, tensor, message, nans, infs)


def _held(tensor: Tensor, nans: int, infs: int) -> str:
    numel = tensor.numel()
    bad = [f"{number:,} {name}" for number, name in ((nans, "NaN"), (infs, "Inf")) if number]
    return f"{' and '.join(bad)} in {numel:,} element{'' if numel == 1 else 's'}"


def _exact(traits: OpTraits, args: Any, kwargs: Any, position: int) -> Tensor | None:
    """Returns the result in float64; None for ops that draw numbers or have no such kernel."""
    if traits.is_random or traits.written or traits.written_names:
        return None
    try:
        results = exact().copy(traits, args, kwargs).results().all
    except (NoKernelError, RuntimeError):
        return None
    return results[position] if position < len(results) else None


def _name(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
