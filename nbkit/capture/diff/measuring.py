"""Measures compared pairs at once, whole or piece by piece, so that usual ops need no second thought.

The native recorder measures a pair in one pass; without it numpy does, see nbkit/numerics/metrics.py.
"""

from math import isfinite, sqrt
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from nbkit.capture.native.library import library
from nbkit.capture.replay.chunked import PIECE, Pieces
from nbkit.capture.replay.reference import CPU
from nbkit.numerics.metrics import MAXIMA, Metrics, measured_one
from nbkit.numerics.precision import Array, Precision

# The numbers of a pair, in the order of the fields of Metrics.
Numbers = list[float]
NOISE, RELATIVE = Metrics._fields.index("noise_ratio"), Metrics._fields.index("max_rel_error")
IS_MAXIMUM = np.array([name in MAXIMA for name in Metrics._fields])
EXPECTED_SQUARE = Metrics._fields.index("expected_square")


class Measured(NamedTuple):
    """Metrics of a pair; of a large one also the noise of every PIECE of its elements."""

    numbers: Numbers
    piece_noise: Array | None = None


class Meter:
    """Measures pairs whose dtype has Inf and whose memory is plain; all others are left to metrics.measure()."""

    def __init__(self) -> None:
        self.library: Any | None = library()

    def measure(self, actual: Tensor, expected: Tensor, precision: Precision | None) -> Measured | None:
        """Metrics of a pair on its own; None where numpy is to measure it, together with others if it is small."""
        if (
            self.library is None
            or precision is None
            or not precision.has_inf
            or not (_is_real(actual) and _is_real(expected))
        ):
            return None
        count = actual.numel()
        if not count:
            return None
        if not (expected.dtype is torch.float64 and expected.is_cpu):
            expected = expected.to(CPU, torch.float64)
        if count <= PIECE:
            numbers = self._native(_readable(actual.to(CPU)).contiguous(), expected.contiguous(), precision, -1.0)
            return None if numbers is None else Measured(numbers)
        actual, expected = actual.to(CPU).contiguous(), expected.contiguous()
        scale = float(torch.linalg.vector_norm(expected)) / sqrt(count)
        if not isfinite(scale):
            return None
        parts = zip(actual.reshape(-1).split(PIECE), expected.reshape(-1).split(PIECE), strict=True)
        rows = [self._native(_readable(left), right, precision, scale) for left, right in parts]
        if None in rows:
            return None
        table = np.array(rows)
        return Measured(combined(table), table[:, NOISE])

    def measure_in_pieces(self, actual: Tensor, pieces: Pieces, precision: Precision | None) -> Numbers | None:
        """Metrics of a large pointwise result beside its reference, of which no piece is kept; None if it is odd.

        Noise is set against the root mean square of the reference, which is known at the end. That of the result stands
        for it meanwhile, and the pieces that may hold the largest noise are measured once more.
        """
        if precision is None or not precision.has_inf or not _is_real(actual) or not actual.is_contiguous():
            return None
        actual = actual.to(CPU)
        scale = float(torch.linalg.vector_norm(actual)) / sqrt(actual.numel())
        if not isfinite(scale) or actual.shape != pieces.shape:
            return None
        parts = actual.reshape(-1).split(PIECE)
        rows = np.empty((len(parts), len(Metrics._fields)))
        for number, part in enumerate(parts):
            numbers = self._piece(part, pieces.result(number), precision, scale)
            if numbers is None or not isfinite(sum(numbers)):
                return None
            rows[number] = numbers
        floor = precision.spacing / precision.eps
        exact = sqrt(rows[:, EXPECTED_SQUARE].sum() / actual.numel())
        change = (scale + floor) / (exact + floor)
        low, high = rows[:, NOISE] * min(change, 1.0), rows[:, NOISE] * max(change, 1.0)
        for number in np.flatnonzero((high >= low.max()) & (high > 0)).tolist() if change != 1 else ():
            rows[number] = self._piece(parts[number], pieces.result(number), precision, exact)
        rows[high < low.max(), NOISE] = 0.0  # not the largest
        return combined(rows)

    def _piece(self, actual: Tensor, expected: Tensor, precision: Precision, scale: float) -> Any:
        if not expected.is_floating_point():
            return None
        right = expected.to(torch.float64)
        if self.library is not None:
            return self._native(_readable(actual), right, precision, scale)
        left = actual.to(torch.float64).numpy()
        return [float(column[0]) for column in measured_one(left, right.numpy(), precision, scale)]

    def _native(self, actual: Tensor, expected: Tensor, precision: Precision, scale: float) -> Numbers | None:
        assert self.library is not None
        key = precision.digits, precision.min_exponent, precision.largest
        numbers: Numbers | None = self.library.measure(actual, expected, key, scale)
        return numbers


def combined(rows: Any) -> Numbers:
    """Metrics of a pair from those of its pieces."""
    numbers: Numbers = np.where(IS_MAXIMUM, rows.max(axis=0), rows.sum(axis=0)).tolist()
    return numbers


def _readable(tensor: Tensor) -> Tensor:
    """The tensor in a dtype that the native recorder reads."""
    return tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.to(torch.float64)


def _is_real(tensor: Tensor) -> bool:
    return tensor.is_floating_point() and tensor.layout is torch.strided
