"""Measures many pairs of arrays: small ones together, large ones piece by piece, equal ones not at all."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from nbkit.numerics.blocks import blocks
from nbkit.numerics.metrics import CHUNK, Metrics, joined, measure, measured_one, rms, total
from nbkit.numerics.precision import Array, Precision

Columns = dict[str, float | int]
MEASURES = ("max_abs_error", "max_rel_error", "max_ulp", "noise_ratio", "mean_abs_error", "cosine_similarity")
SIDES = {"left": "expected", "right": "actual"}


class Pair(NamedTuple):
    """Holds two arrays of one shape, none of them empty, and the precision of the compared dtype, null of integers.

    `scale` is the root mean square of the finite expected values, if that is known. Of an equal pair every element is
    equal, or NaN on both sides.
    """

    expected: Array
    actual: Array
    precision: Precision | None
    scale: float | None = None
    is_equal: bool = False

    @property
    def is_complex(self) -> bool:
        return "c" in (self.expected.dtype.kind, self.actual.dtype.kind)


def measured_pairs(pairs: Sequence[Pair]) -> list[Columns]:
    """Returns of each pair the columns of nbkit.numerics.metrics that a pair has where left is expected."""
    found: list[Columns] = [{} for _ in pairs]
    together: dict[tuple[Precision | None, bool], list[int]] = {}
    for at, pair in enumerate(pairs):
        if pair.is_equal and not pair.is_complex:
            found[at] = _columns_of_equal(pair.expected)
        elif pair.expected.size <= CHUNK or pair.precision is None:
            together.setdefault((pair.precision, pair.is_complex), []).append(at)
        else:
            (found[at],) = _columns(_piece_by_piece(pair, pair.precision))
    for (precision, is_complex), numbers in together.items():
        for batch in _batches(numbers, pairs):
            metrics = _at_once([pairs[at] for at in batch], precision, is_complex)
            for at, columns in zip(batch, _columns(metrics), strict=True):
                found[at] = columns
    return found


def _batches(numbers: Iterable[int], pairs: Sequence[Pair]) -> Iterator[list[int]]:
    """Yields pairs that are together no larger than what a core's cache holds, or alone."""
    batch: list[int] = []
    held = 0
    for at in numbers:
        size = pairs[at].expected.size
        if batch and held + size > CHUNK:
            yield batch
            batch, held = [], 0
        batch.append(at)
        held += size
    yield batch


def _columns_of_equal(value: Array) -> Columns:
    is_float = value.dtype.kind == "f"
    nans, infs = (int(np.isnan(value).sum()), int(np.isinf(value).sum())) if is_float else (0, 0)
    counts = {f"{side}_{what}": count for what, count in (("nan_count", nans), ("inf_count", infs)) for side in SIDES}
    return {**dict.fromkeys(MEASURES, 0.0), "cosine_similarity": 1.0, **counts}


def _piece_by_piece(pair: Pair, precision: Precision) -> Metrics:
    wide = np.complex128 if pair.is_complex else np.float64
    scale = _rms(block for (block,) in blocks((pair.expected,), wide)) if pair.scale is None else pair.scale
    pieces = blocks((pair.expected, pair.actual), wide, CHUNK)
    return total(joined([measured_one(actual, expected, precision, scale) for expected, actual in pieces]))


def _rms(pieces: Iterable[Array]) -> float:
    """Returns the root mean square of the finite elements of all pieces."""
    found = [(rms(piece), np.count_nonzero(np.isfinite(piece))) for piece in pieces]
    largest, count = max(size for size, _ in found), sum(count for _, count in found)
    return largest * (sum((size / largest) ** 2 * number for size, number in found) / count) ** 0.5 if largest else 0.0


def _at_once(pairs: Sequence[Pair], precision: Precision | None, is_complex: bool) -> Metrics:
    wide: Any = np.int64 if precision is None else np.complex128 if is_complex else np.float64
    expected = np.concatenate([pair.expected.astype(wide).reshape(-1) for pair in pairs])
    actual = np.concatenate([pair.actual.astype(wide).reshape(-1) for pair in pairs])
    starts = np.cumsum([0, *(pair.expected.size for pair in pairs[:-1])])
    return measure(actual, expected, starts, precision)


def _columns(metrics: Metrics) -> list[Columns]:
    """Returns the columns of each pair."""
    columns: dict[str, list[Any]] = {name: getattr(metrics, name).tolist() for name in MEASURES}
    for what in ("nan_count", "inf_count"):
        columns |= {f"{side}_{what}": getattr(metrics, f"{word}_{what}").tolist() for side, word in SIDES.items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
