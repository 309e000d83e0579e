"""Patterns that need more of the call than its result: its inputs, other results, inputs of fewer bits, another eps."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nbkit.capture.diff.pair import flat
from nbkit.capture.diff.patterns.candidate import Found, Wrong
from nbkit.capture.diff.rechecks.reduced import FLOAT32_BITS, kept, to_even
from nbkit.capture.replay.copies import mapped_call
from nbkit.capture.replay.op_traits import bound, written_tensors
from nbkit.numerics.metrics import rms
from nbkit.numerics.precision import Array

Round = Callable[[Tensor], Tensor]
TF32_BITS = 10
# Formats of inputs, the coarsest first; a result is tried with those that have fewer bits than its dtype.
FORMATS: dict[str, tuple[int, Round]] = {
    "bfloat16": (7, lambda values: values.bfloat16()),
    "TF32": (TF32_BITS, lambda values: kept(values, FLOAT32_BITS - TF32_BITS, to_even)),
    "float16": (10, lambda values: values.half()),
    "float32": (23, lambda values: values.float()),
}
# How far the size of an error may be from what such inputs would make.
FACTOR = 8.0
# Of the search for another eps: its steps at the most, how much of the error each must take away, a small change.
STEPS, TAKEN, CHANGE = 20, 0.1, 1e-4


def other_values(wrong: Wrong) -> Iterator[Found | None]:
    """Another tensor of the call: what the memory held before, an input, another result."""
    call, position = wrong.pair.call, wrong.pair.position
    args, kwargs = call.widened()
    written = written_tensors(call.traits, args, kwargs)
    for number, tensor in enumerate(call.tensors()):
        if tuple(tensor.shape) != wrong.shape or len(wrong.actual) < 2:
            continue
        values = flat(tensor, copy=False)
        if values.dtype == wrong.actual.dtype and np.array_equal(values, wrong.actual):
            is_written = any(tensor is one for one in written)
            name = "unchanged" if is_written else "copied_input"
            yield wrong.found(name, {} if is_written else {"input": number}, values)
    for number, tensor in enumerate(wrong.pair.results.all):
        if number != position and tuple(tensor.shape) == wrong.shape and len(wrong.actual) > 1:
            values = flat(tensor, copy=False)
            if values.dtype == wrong.actual.dtype:
                yield wrong.found("other_result", {"result": number}, values)


def rounded_inputs(wrong: Wrong) -> Iterator[Found]:
    """The reference from inputs of fewer bits, tried where the error is about as large as these would make it."""
    call, precision = wrong.pair.call, wrong.precision
    if precision is None or call.reference.function is not None or call.reference.dtype is not torch.float64:
        return
    size, unit = rms(np.abs(wrong.error)), rms(np.abs(wrong.conditioning)) / wrong.eps
    fitting = []
    for name, (bits, rounded) in FORMATS.items():
        expected_size = unit * 2.0 ** -(bits + 1) / 3**0.5
        if bits + 2 >= precision.digits or not expected_size / FACTOR <= size <= expected_size * FACTOR:
            continue
        candidate = flat(_results(wrong, rounded)[wrong.pair.position], copy=False)
        if wrong.may_be(candidate[wrong.places]) and (fit := wrong.fit(candidate)) is not None:
            fitting.append((name, fit))
    if fitting:
        _, fit = fitting[0]
        yield Found("rounded_inputs", {"format": " or ".join(name for name, _ in fitting), **fit.evidence})


def other_eps(wrong: Wrong) -> Iterator[Found | None]:
    """The reference with another eps, the same for all elements, in place of the one that a norm was given."""
    call = wrong.pair.call
    func = call.traits.func
    names = [argument.name for argument in func._schema.arguments]
    if wrong.precision is None or call.reference.function is not None or "eps" not in names:
        return
    args, kwargs = call.widened()
    given, at = bound(func, args, kwargs)["eps"], names.index("eps")
    if not isinstance(given, float):
        return

    def result(eps: float) -> Array:
        changed = ((*args[:at], eps, *args[at + 1 :]), kwargs) if at < len(args) else (args, {**kwargs, "eps": eps})
        return flat(call.once(*changed).all[wrong.pair.position], copy=False)

    eps, spread, candidate = _fitted_eps(wrong, result, given)
    if wrong.may_be(candidate[wrong.places]):
        digits = 3 if eps > 1000 * spread else 2 if eps > 100 * spread else 1
        told = float(f"{eps:.{digits}g}") if eps > spread else 0.0
        yield wrong.found("other_eps", {"eps": told, "given_eps": given}, candidate)


def _fitted_eps(wrong: Wrong, result: Callable[[float], Array], given: float) -> tuple[float, float, Array]:
    """Returns the eps that leaves the least squared error (Gauss, Newton), how far rounding moves it, and its result.

    What a norm gives falls ever more slowly as eps grows: steps from below never go too far, one from above ends at 0.
    """
    eps, spread, candidate = given, 0.0, wrong.expected
    left = np.inf
    for _ in range(STEPS):
        error = np.nan_to_num(wrong.actual - candidate)
        before, left = left, float(np.vdot(error, error))
        change = CHANGE * max(eps, given, 1e-12)
        slope = np.nan_to_num((result(eps + change) - candidate) / change)
        square = float(np.vdot(slope, slope))
        if not 0 < square < np.inf or left > (1 - TAKEN) * before:
            break
        spread = wrong.step * float(np.linalg.norm(slope * np.nan_to_num(wrong.actual))) / square
        eps = max(eps + float(np.vdot(slope, error)) / square, 0.0)
        candidate = result(eps)
    return eps, spread, candidate


def _results(wrong: Wrong, rounded: Round) -> list[Tensor]:
    def change(value: Any) -> Any:
        if not isinstance(value, Tensor) or not value.is_floating_point():
            return value
        return rounded(value).to(value.dtype)

    call = wrong.pair.call
    return call.once(*mapped_call(*call.widened(), change, {})).all
