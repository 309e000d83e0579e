"""Tells whether a value is one that an execution computed, in any order of axes."""

import numpy as np
import numpy.typing as npt

from nbkit.analysis.align.relations import permutation_of, relative_error
from nbkit.analysis.align.side import FEW_ELEMENTS, FEW_VALUES, Side
from nbkit.trace.executions.execution import Array

# So many candidates with the same moments are compared, at most.
MOST_TRIALS = 3
SAMPLE = 64


class KnownValues:
    """Holds the activations of an execution; values count as the same up to a relative error.

    Where one side reads the sequence in so many `steps` and the other one at once, what it gives at the first of them
    is known, too.
    """

    def __init__(self, side: Side, numbers: list[int], tolerance: float, steps: tuple[int, int] = (1, 1)) -> None:
        self.tolerance = tolerance
        left, right = steps
        self._length = left if left > right == 1 else 0  # of the axis of time of what is looked for
        self._of_size: dict[int, list[tuple[npt.NDArray[np.float64], Array | None]]] = {}
        self._moments: dict[int, npt.NDArray[np.float64]] = {}  # of all of a size
        for number in numbers:
            known = side.results[number].features
            if known is None or not side.is_telling[number] or not side.eps[number]:
                continue
            value = side.execution.value(number)
            moments = np.array([known.rms, known.mean, known.mean_abs, known.min, known.max])
            self._add(moments, value, int(side.numel[number]))
            for first in _firsts(value, right if right > left == 1 else 0):
                if is_telling(first):
                    self._add(_moments(first), first, first.size)

    def _add(self, moments: npt.NDArray[np.float64], value: Array | None, size: int) -> None:
        self._of_size.setdefault(size, []).append((moments, value))

    def has(self, value: Array) -> bool:
        """Returns whether a result has these elements; false where they prove nothing."""
        return any(map(self._has, [value, *_firsts(value, self._length)]))

    def _has(self, value: Array) -> bool:
        candidates = self._of_size.get(value.size)
        if candidates is None or not is_telling(value):
            return False
        known = self._moments_of(value.size)
        size = np.where(known[:, 0] > 0, known[:, 0], 1.0)
        distance = np.abs(known - _moments(value)).max(axis=1) / size
        near = distance <= 4 * self.tolerance * np.maximum(1.0, np.abs(known).max(axis=1) / size)
        nearest = [place for place in np.argsort(distance, kind="stable")[:MOST_TRIALS].tolist() if near[place]]
        return any(self._is_same(candidates[place][1], value) for place in nearest)

    def _moments_of(self, size: int) -> npt.NDArray[np.float64]:
        if size not in self._moments:
            self._moments[size] = np.stack([moments for moments, _ in self._of_size[size]])
        return self._moments[size]

    def _is_same(self, held: Array | None, value: Array) -> bool:
        if held is None:
            return True  # its statistics are all that is known
        if relative_error(held.reshape(-1), value.reshape(-1)) <= self.tolerance:
            return True
        return permutation_of(held, value, self.tolerance) is not None


def _firsts(value: Array | None, length: int) -> list[Array]:
    """Returns the values at the first step of each axis of that length, but the last axis."""
    if value is None or not length:
        return []
    return [np.asarray(value.take(0, axis)) for axis, size in enumerate(value.shape[:-1]) if size == length]


def is_telling(value: Array) -> bool:
    """Returns whether values equal to these are proof: finite, and more than two different ones."""
    flat = value.reshape(-1)
    if value.size <= FEW_ELEMENTS or value.dtype.kind not in "fc" or not np.isfinite(flat).all():
        return False
    sample = flat[:: max(flat.size // SAMPLE, 1)][:SAMPLE]
    return len(np.unique(sample)) > FEW_VALUES


def _moments(value: Array) -> npt.NDArray[np.float64]:
    if np.iscomplexobj(value):
        value = np.stack([value.real, value.imag], axis=-1)
    flat = value.reshape(-1).astype(np.float64)
    size = np.abs(flat)
    rms = float(np.sqrt(flat @ flat / flat.size))
    return np.array([rms, flat.mean(), size.mean(), flat.min(), flat.max()])
