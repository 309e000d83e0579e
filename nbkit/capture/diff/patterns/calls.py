"""Patterns that need more of the call than its result: its inputs, its other results, inputs of fewer bits."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nbkit.capture.diff.pair import flat
from nbkit.capture.diff.patterns.candidate import Found, Wrong
from nbkit.capture.diff.rechecks.reduced import FLOAT32_BITS, kept, to_even
from nbkit.capture.replay.copies import mapped_call
from nbkit.capture.replay.op_traits import written_tensors
from nbkit.numerics.metrics import rms

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


def other_values(wrong: Wrong) -> Iterator[Found]:
    """Another tensor of the call: what the memory held before, an input, another result."""
    call, position = wrong.pair.call, wrong.pair.position
    args, kwargs = call.widened()
    written = written_tensors(call.traits, args, kwargs)
    for number, tensor in enumerate(call.tensors()):
        if tuple(tensor.shape) != wrong.shape or len(wrong.actual) < 2:
            continue
        values = flat(tensor, copy=False)
        if values.dtype == wrong.actual.dtype and np.array_equal(values, wrong.actual):
            fit = wrong.fit(values)
            if fit is not None and any(tensor is one for one in written):
                yield Found("unchanged", fit.evidence)
            elif fit is not None:
                yield Found("copied_input", {"input": number, **fit.evidence})
    for number, tensor in enumerate(wrong.pair.results.all):
        if number != position and tuple(tensor.shape) == wrong.shape and len(wrong.actual) > 1:
            values = flat(tensor, copy=False)
            fit = wrong.fit(values) if values.dtype == wrong.actual.dtype else None
            if fit is not None:
                yield Found("other_result", {"result": number, **fit.evidence})


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


def _results(wrong: Wrong, rounded: Round) -> list[Tensor]:
    def change(value: Any) -> Any:
        if not isinstance(value, Tensor) or not value.is_floating_point():
            return value
        return rounded(value).to(value.dtype)

    call = wrong.pair.call
    return call.once(*mapped_call(*call.widened(), change, {})).all
