"""Finds where a NaN, an Inf or a result without precision begins: at the op whose inputs do not explain it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from math import floor, inf, isfinite, isinf, isnan, log2
from typing import Any

import torch
from torch import Tensor

from nbkit import units
from nbkit.capture.check.inputs import inputs_text, numbers_in, read_only
from nbkit.capture.check.values import counts, first_true, is_float, largest, number_text, smallest_normal, values_of
from nbkit.capture.replay.copies import all_tensors, mapped_call
from nbkit.capture.replay.op_traits import OpTraits, bound, traits_of
from nbkit.capture.replay.reference import NoKernelError, Reference
from nbkit.findings.bad_values import GIVEN
from nbkit.ops.families import CASTS, FILLS, WRAPPING
from nbkit.ops.names import base_of
from nbkit.schema.message import Message, element

# Wider ones wrap on purpose: hashes, keys.
NARROW_INTEGERS = (torch.uint8, torch.int8, torch.int16)
# Of what came in: a parameter was so before, other tensors may be made within the step, out of sight.
NOBODY = ", and no recorded op made it so"


@cache
def visible_results(func: Any) -> float:
    """Returns how many of an op's results the step can see and use; the others are notes for its backward op.

    That is given a gradient of each result but of those: aten.native_layer_norm_backward one, not of mean and rstd.
    """
    backward = getattr(torch.ops.aten, f"{func._opname.removesuffix('_forward')}_backward", None)
    if backward is None or func.namespace != "aten":
        return inf
    arguments = getattr(backward, backward.overloads()[0])._schema.arguments
    gradients = [arg for arg in arguments if arg.name.startswith("grad") and "Tensor" in str(arg.type)]
    return len(gradients) or inf


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
    reads_inf: bool = False
    is_masked: bool = False  # added to what a mask had put at the lowest number
    cause: str | None = None  # as in findings.bad_values; what the step gives is wrong only where it is trained on

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
    read = [each for each in read_only(traits, args, kwargs, written) if is_float(each)]
    non_finite = [counts(each) for each in read]
    numbers = list(numbers_in((args, kwargs)))
    had_nan = any(nan for nan, _ in non_finite) or (traits.packet in FILLS and any(map(isnan, numbers)))
    had_inf = any(inf for _, inf in non_finite) or any(map(isinf, numbers))
    if had_nan or (had_inf and not nans):
        return None
    values = values_of(tensor)
    indices = first_true(torch.isnan(values) if nans else torch.isinf(values))
    kind, what = ("nan", "NaN") if nans else _infinite(traits, args, kwargs, written, tensor, position, indices)
    inputs = inputs_text(traits, args, kwargs, written, position, indices, values.shape)
    message = Message(*_how_many(nans or infs, values, what, indices), inputs)
    is_masked = not nans and traits.packet in ("add", "add_") and _is_masked(values, map(values_of, read))
    cause = _cause(traits, args, kwargs, indices) if nans else None
    found = BadTensor(kind, "output", position, tensor, message, nans, infs)
    found.reads_inf, found.is_masked, found.cause = had_inf, is_masked, cause
    return found


def _cause(traits: OpTraits, args: Any, kwargs: Any, indices: list[int]) -> str | None:
    """Returns why an op made a NaN there where its kind says it: softmax of -Inf alone, a mean over no target."""
    arguments = bound(traits.func, args, kwargs)
    if traits.packet == "_softmax" and arguments["self"][tuple(indices)].item() == -inf:
        return "hidden_row"
    if traits.packet.startswith("nll_loss") and bool((arguments["target"] == arguments["ignore_index"]).all()):
        return "no_target"
    return None


def _is_masked(values: Tensor, read: Iterable[Tensor]) -> bool:
    """Returns whether each Inf is -Inf where one of the terms was the lowest number: scores that two masks hide."""
    if values.is_complex():
        return False
    places = torch.isinf(values)
    return bool((values[places] < 0).all()) and any(
        bool((each.expand_as(values)[places] == torch.finfo(each.dtype).min).all()) for each in read
    )


def _infinite(
    traits: OpTraits, args: Any, kwargs: Any, written: list[Tensor], tensor: Tensor, position: int, indices: list[int]
) -> tuple[str, str]:
    """Returns the rule for an Inf that an op made of finite inputs, and what is told of it."""
    ends = f"({_name(tensor)} ends at {number_text(float(torch.finfo(tensor.dtype).max))})"
    if written:
        is_finite = _is_finite_exactly(traits, args, kwargs, written, indices)
        return ("overflow", f"Inf where the exact result does not fit {ends}") if is_finite else ("inf", "Inf")
    precise = _exact(traits, args, kwargs, position)
    if precise is None or precise.shape != tensor.shape:
        return "inf", "Inf"
    exact_value = precise[tuple(indices)].item()
    if not isfinite(abs(exact_value)):
        return "inf", "Inf"
    number = element(number_text(exact_value))
    if abs(exact_value) > torch.finfo(tensor.dtype).max:
        return "overflow", Message("Inf where ", number, f" does not fit {ends}")
    return "overflow", Message(
        "Inf where the exact result ", number, f" fits {ends}: the op overflows on its way to it"
    )


def _is_finite_exactly(traits: OpTraits, args: Any, kwargs: Any, written: list[Tensor], indices: list[int]) -> bool:
    """Returns whether an op that has overwritten its input gives finite results of any; False where nobody knows.

    What an elementwise op makes Inf of exactly is 0, 1 or -1, whatever else it is given: reciprocal, log1p, atanh.
    """
    function = _not_in_place(traits)
    if function is None or len(written) != 1:
        return False
    results = [_exact(function, *_given(args, kwargs, written[0], number), 0) for number in (0, 1, -1)]
    return all(
        precise is not None and precise.shape == written[0].shape and isfinite(abs(precise[tuple(indices)].item()))
        for precise in results
    )


def _not_in_place(traits: OpTraits) -> OpTraits | None:
    """Returns the elementwise op that an in-place op is by its name and its overload, and that writes to nothing."""
    packet = getattr(torch.ops.aten, base_of(traits.packet), None)
    is_alike = traits.packet.endswith("_") and traits.func.namespace == "aten" and packet is not None
    function = getattr(packet, traits.func._overloadname, None) if is_alike else None
    return traits_of(function) if function is not None and traits_of(function).is_pointwise else None


def _given(args: Any, kwargs: Any, written: Tensor, number: float) -> tuple[Any, Any]:
    """Returns the arguments of a call with a number in the place of a tensor's values."""
    return mapped_call(args, kwargs, lambda each: torch.full_like(each, number) if each is written else each, {})


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


def saturated_of(traits: OpTraits, args: Any, tensor: Tensor, position: int) -> BadTensor | None:
    """Returns that a cast gives numbers for such as its dtype does not hold, and neither NaN nor Inf shows it."""
    source = args[CASTS[traits.packet]]
    if not isinstance(source, Tensor) or not source.is_floating_point() or source.dtype == tensor.dtype:
        return None
    if tensor.dtype is torch.bool or tensor.is_complex():
        return None
    if tensor.is_floating_point() and torch.finfo(source.dtype).max <= torch.finfo(tensor.dtype).max:
        return None
    if source.layout is not torch.strided or tensor.layout is not torch.strided or source.is_meta:
        return None
    values, made = values_of(source).expand(tensor.shape), values_of(tensor)
    if tensor.is_floating_point():
        most = torch.finfo(tensor.dtype).max
        half = 2.0 ** floor(log2(most)) * torch.finfo(tensor.dtype).eps / 2  # what rounds to it
        lost, ends = (values.abs() > most + half) & made.isfinite(), f"it ends at {number_text(most)}"
    else:
        ends_at = torch.iinfo(tensor.dtype)
        whole = values.trunc()  # an Inf or a NaN is told where it begins
        lost = ((whole < float(ends_at.min)) | (whole >= float(ends_at.max) + 1)) & values.isfinite()
        ends = f"it holds {ends_at.min} to {ends_at.max}, and torch does not define what others become"
    if not lost.any():
        return None
    first = first_true(lost)
    was, is_now = (number_text(each[tuple(first)].item()) for each in (values, made))
    how_many = _how_many(int(lost.sum()), values, f"beyond {_name(tensor)}", first)
    message = Message(*how_many, ": ", element(was), " became ", element(is_now), f" ({ends})")
    return BadTensor("saturated", "output", position, tensor, message)


def may_wrap(traits: OpTraits) -> bool:
    """Returns whether an op computes integers, and may give one that its dtype does not hold."""
    return traits.packet in WRAPPING and not traits.is_writing


def wrapped_of(traits: OpTraits, args: Any, kwargs: Any, tensor: Tensor, position: int) -> BadTensor | None:
    """Returns that integers of 8 or 16 bits went beyond the end of their dtype, and on from its other end."""
    if tensor.dtype not in NARROW_INTEGERS or tensor.layout is not torch.strided or tensor.is_meta:
        return None
    wide_args, wide_kwargs = mapped_call(args, kwargs, _widened, {})
    wide = traits.func(*wide_args, **wide_kwargs)
    lost = wide != tensor
    if not lost.any():
        return None
    first, ends_at = first_true(lost), torch.iinfo(tensor.dtype)
    was, is_now = (number_text(each[tuple(first)].item()) for each in (wide, tensor))
    how_many = _how_many(int(lost.sum()), tensor, f"beyond {_name(tensor)}", first)
    message = Message(
        *how_many, ": ", element(was), " became ", element(is_now), f" (it holds {ends_at.min} to {ends_at.max})"
    )
    return BadTensor("wrapped", "output", position, tensor, message)


def _widened(value: Any) -> Any:
    """Returns a narrow integer tensor, or its dtype, as int64."""
    if isinstance(value, Tensor):
        return value.to(torch.int64) if value.dtype in NARROW_INTEGERS else value
    return torch.int64 if value in NARROW_INTEGERS else value


def given_nan(traits: OpTraits, args: Any, kwargs: Any, tensor: Tensor, position: int) -> BadTensor | None:
    """Returns that an op put NaN into memory which it was given as a number, or as a tensor of one; else None."""
    numbers = [each for each in all_tensors(args, kwargs) if is_float(each) and each.dim() == 0]
    is_number = any(map(isnan, numbers_in((args, kwargs)))) or any(counts(each)[0] for each in numbers)
    nans, infs = counts(tensor)
    if not (nans and is_number and (traits.packet in FILLS or traits.packet == "copy_")):
        return None
    how_many = _how_many(nans, values_of(tensor), "NaN", first_true(torch.isnan(values_of(tensor))))
    message = Message(*how_many, ": the step puts it there, and it reaches the gradients")
    return BadTensor("nan", "output", position, tensor, message, nans, infs, cause=GIVEN)


def from_outside(tensor: Tensor, position: int) -> BadTensor:
    """Reports an input that no recorded op made and that holds NaN or Inf already."""
    nans, infs = counts(tensor)
    what = " and ".join([name for name, number in (("NaN", nans), ("Inf", infs)) if number])
    of = f"{nans + infs:,} of {units.counted(tensor.numel(), 'element')}"
    message = f"input {position} is {what}{NOBODY} ({of})"
    return BadTensor("input", "input", position, tensor, message, nans, infs)


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
