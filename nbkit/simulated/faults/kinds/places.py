"""Puts right numbers in wrong places: shifted, dropped, repeated, interleaved, swapped."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from nbkit.simulated.call import Call, NotApplicableError, Results
from nbkit.simulated.faults.kinds.kind import Kind
from nbkit.simulated.faults.kinds.values import each_real, is_real

# Gates of an LSTM and of a GRU lie side by side along the last axis of what computes them.
GATES = (4, 3)


def shifted_result(call: Call, size: None, memory: dict[Any, Any]) -> Results:
    """Returns every element one place further along the last axis, the last one in the first place."""
    return each_real(call, lambda result: result.roll(1, -1) if result.dim() else result)


def dropped_tile(call: Call, size: float, memory: dict[Any, Any]) -> Results:
    """Returns zeros in the last `size` elements along the last axis, which no tile of the kernel covers."""
    return each_real(call, lambda result: _without_end(result, int(size)))


def repeated_row(call: Call, size: None, memory: dict[Any, Any]) -> Results:
    """Returns the first row of each matrix in place of all its rows."""
    return _matrices(call, lambda result: result[..., :1, :].expand_as(result).clone())


def interleaved_halves(call: Call, size: None, memory: dict[Any, Any]) -> Results | None:
    """Returns both halves of the last axis as pairs: a1 b1 a2 b2 ... for a1 a2 ... b1 b2 ..."""

    def interleaved(result: Tensor) -> Tensor:
        halves: Tensor = result.unflatten(-1, (2, -1))
        return halves.mT.flatten(-2).clone()

    return _with_last_axis(call, 2, interleaved)


def swapped_gates(call: Call, size: None, memory: dict[Any, Any]) -> Results | None:
    """Returns a product whose last axis is a multiple of 4, else of 3, with the first two of so many parts swapped."""
    if call.name not in ("mm", "addmm", "bmm", "baddbmm", "linear"):
        raise NotApplicableError(f"{call.func} is no matrix product, which gates come from")

    def swapped(count: int) -> Callable[[Tensor], Tensor]:
        def change(result: Tensor) -> Tensor:
            first, second, *others = result.chunk(count, -1)
            return torch.cat([second, first, *others], -1)

        return change

    found = (_with_last_axis(call, count, swapped(count)) for count in GATES)
    return next((results for results in found if results is not None), None)


def swapped_results(call: Call, size: None, memory: dict[Any, Any]) -> Results | None:
    """Returns the first two results of one shape and dtype in each other's place."""
    if len(call.results) < 2:
        raise NotApplicableError(f"{call.func} has one result")
    for one, left in enumerate(call.results):
        for other, right in enumerate(call.results[:one]):
            if left.shape == right.shape and left.dtype == right.dtype:
                wrong = [result.clone() for result in call.results]
                wrong[one], wrong[other] = wrong[other], wrong[one]
                return wrong
    return None


def dropped_last_of_list(call: Call, size: None, memory: dict[Any, Any]) -> Results:
    """Returns the last tensor of a list that the op writes to as it was."""
    lists = [value for value in call.args if isinstance(value, list | tuple)]
    written = [one for value in lists for one in value[-1:] if id(one) in call.before]
    if not written:
        raise NotApplicableError(f"{call.func} writes to no list of tensors")
    numbers = list(call.before)
    wrong = [result.clone() for result in call.results]
    for tensor in written:
        wrong[numbers.index(id(tensor))] = call.before[id(tensor)]
    return wrong


def _without_end(result: Tensor, count: int) -> Tensor:
    wrong = result.clone()
    if wrong.dim():
        wrong[..., -count:] = 0
    return wrong


def _matrices(call: Call, change: Callable[[Tensor], Tensor]) -> Results:
    if not any(is_real(result) and result.dim() > 1 for result in call.results):
        raise NotApplicableError(f"{call.func} has no floating-point matrix among its results")
    return each_real(call, lambda result: change(result) if result.dim() > 1 else result)


def _with_last_axis(call: Call, multiple: int, change: Callable[[Tensor], Tensor]) -> Results | None:
    """Returns results with those changed whose last axis is a multiple, and longer; None where there is none."""
    fits = [is_real(one) and one.dim() > 0 and one.shape[-1] % multiple == 0 for one in call.results]
    if not any(fits):
        return None
    return [change(one) if is_fit else one for one, is_fit in zip(call.results, fits, strict=True)]


KINDS = (
    Kind("shifted_result", shifted_result, "every element stands one place further along the last axis"),
    Kind(
        "dropped_tile",
        dropped_tile,
        "the last elements along the last axis are zero, as no tile covers them",
        "how many",
        1,
        smallest=1,
    ),
    Kind("repeated_row", repeated_row, "each row of a matrix is its first row"),
    Kind(
        "interleaved_halves",
        interleaved_halves,
        "both halves of the last axis are written as pairs",
        needs="a result whose last axis has an even size",
    ),
    Kind(
        "swapped_gates",
        swapped_gates,
        "the first two of four, or of three, parts of a product's last axis change places",
        needs="a last axis that is a multiple of 4 or 3",
    ),
    Kind(
        "swapped_results",
        swapped_results,
        "two results of one shape change places",
        needs="two results of one shape and dtype",
    ),
    Kind("dropped_last_of_list", dropped_last_of_list, "the last tensor of a list is not written"),
)
