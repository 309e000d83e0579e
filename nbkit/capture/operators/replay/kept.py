"""Compares what a call that opdiff kept returned and wrote with the results that were kept of it."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from nbkit.capture.calls.encode import NAMED
from nbkit.capture.calls.rebuilding import refusing
from nbkit.capture.diff.mode import role_of
from nbkit.capture.diff.pair import flat
from nbkit.capture.operators.replay.run import Ran, Result
from nbkit.capture.replay.reference import Results
from nbkit.numerics.precision import Array
from nbkit.trace.calls.layout import Record
from nbkit.trace.captured_folder import read_array

NOT_KEPT = "its values were not kept"


def kept_results(ran: Ran) -> Iterator[Result]:
    """Yields all results of a call; those that opdiff kept are compared. Raises TraceError."""
    with refusing("its record cannot be used"):
        kept = {
            (str(entry["role"]), int(entry["position"])): entry for entry in ran.built.record["compared"]["results"]
        }
    for place, actual in _places(ran):
        if place not in kept:
            yield Result(*place, actual, None, None, note=NOT_KEPT)
            continue
        with refusing("its results cannot be read"):
            yield _compared(ran, place, actual, kept[place])


def _places(ran: Ran) -> Iterator[tuple[tuple[str, int], Tensor]]:
    """Yields the tensors that opdiff compares, with role and position."""
    arguments = ran.built.args, ran.built.kwargs
    results = Results.of(ran.traits, ran.out, *arguments)
    for index, tensor in enumerate(results.all):
        yield role_of(results, index, arguments), tensor


def _compared(ran: Ran, place: tuple[str, int], actual: Tensor, entry: Record) -> Result:
    dtype, shape = NAMED["dtype"][entry["dtype"]], [int(size) for size in entry["shape"]]
    for name, value, expected in (("dtype", actual.dtype, dtype), ("shape", list(actual.shape), shape)):
        if value != expected:
            return Result(*place, actual, None, f"{name} {value}, expected {expected}".replace("torch.", ""))
    wide = read_array(entry["actual"], ran.built.content)
    expected = torch.from_numpy(wide.copy()).to(dtype).reshape(shape)
    if not actual.numel() or _same(flat(actual), wide):
        return Result(*place, actual, expected, None)
    return Result(*place, actual, expected, "other bits", has_other_bits=True)


def _same(left: Array, right: Array) -> bool:
    """Returns whether values are the same to the bit, but for those of NaN, which widening does not keep."""
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    is_nan = (left != left) & (right != right)
    bits = [np.ascontiguousarray(side).view(np.int64).reshape(len(side), -1) for side in (left, right)]
    return bool(((bits[0] == bits[1]).all(axis=1) | is_nan).all())
