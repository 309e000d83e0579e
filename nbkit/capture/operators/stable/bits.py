"""Compares results to the bit, and measures how far apart they are where bits differ."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from nbkit.capture.diff.pair import flat, pieces_of
from nbkit.capture.operators.elsewhere import OTHER_GENERATORS
from nbkit.capture.operators.rounding import INTEGERS
from nbkit.numerics.metrics import measure_one
from nbkit.numerics.precision import precision_of


class Distance(NamedTuple):
    """Holds the largest distance of two results in ULP, of integers their difference, and how many elements differ.

    `fraction` is the largest difference over the largest element; NaN where that says nothing.
    """

    max_ulp: float
    elements: int
    fraction: float = float("nan")


def is_trusted(tensor: Tensor) -> bool:
    """Returns whether a tensor may be compared where it is: on the CPU, or on a device of torch's own."""
    return tensor.is_cpu or tensor.device.type in OTHER_GENERATORS


class Kept:
    """Holds a result with its bits, which others are compared with several times."""

    __slots__ = ("bits", "tensor")

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self.bits = bits_of(tensor)

    def distance(self, other: Tensor) -> Distance | None:
        """Returns how far another result is from this one; None where it has the same bits, NaN being like NaN."""
        tensor = self.tensor
        if other.shape != tensor.shape or other.dtype != tensor.dtype:
            return Distance(float("inf"), max(other.numel(), tensor.numel()))
        if torch.equal(bits_of(other), self.bits):
            return None
        return _measured(other, tensor)


def bits_of(tensor: Tensor) -> Tensor:
    """Returns the bits of a tensor as integers, in the order of its elements."""
    if not is_trusted(tensor):
        tensor = tensor.cpu()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj().resolve_neg())
    elif tensor.is_neg():
        tensor = tensor.resolve_neg()
    return tensor.contiguous().view(INTEGERS[tensor.element_size()])


def _measured(actual: Tensor, expected: Tensor) -> Distance | None:
    """The distance of two results of one shape and dtype whose bits are not the same; None where all are NaN."""
    precision = precision_of(str(actual.dtype).removeprefix("torch."))
    different = flat(actual) != flat(expected) if precision is None else _different(actual, expected)
    if not different.any():
        return None
    ulp = float(measure_one(pieces_of(actual.cpu()), flat(expected), precision).max_ulp[0])
    with np.errstate(all="ignore"):
        left, right = flat(actual).astype(np.complex128), flat(expected).astype(np.complex128)
        largest = np.abs(right).max()
        fraction = float(np.abs(left - right).max() / largest) if largest else float("nan")
    return Distance(float("inf") if np.isnan(ulp) else ulp, int(different.sum()), fraction)


def _different(actual: Tensor, expected: Tensor) -> np.ndarray:
    left, right = flat(actual), flat(expected)
    both_nan = np.isnan(left) & np.isnan(right)
    # The sign of a zero is a bit, too.
    same = (left == right) & (np.signbit(left.real) == np.signbit(right.real))
    same &= np.signbit(left.imag) == np.signbit(right.imag)
    different: np.ndarray = ~(same | both_nan)
    return different
