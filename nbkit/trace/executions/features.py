"""Reduces a tensor to numbers by which it is found again in another execution: some see the order of elements.

Two tensors that hold the same elements in any order have the same moments. Reshaped ones have the same projections,
too, and permuted ones the same symmetric projections. Under noise of relative size e, all differ by about e.
"""

from functools import lru_cache
from math import isfinite, prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nbkit.numerics.blocks import inner_product

Array = npt.NDArray[np.generic]
Floats = npt.NDArray[np.float64]
BLOCK = 4096
# Products of a vector of this length are so small that a BLAS does not wake its threads, which costs milliseconds.
SHORT = 1024
PROJECTIONS = 6
SYMMETRIC = 3
SEED = 20_250
# Elements by which a tensor is told from one of few values, and what spreads them: by the golden ratio, in steps that
# are not all a multiple of a row.
SAMPLE, GOLDEN = 64, (5**0.5 - 1) / 2
# Elements that are widened at a time, in blocks.
PIECE = 8 * BLOCK
# Random signs of so many blocks are made at once.
FEWEST_BLOCKS = 4096
# The squares of numbers whose largest is in between are far from the ends of float64.
SAFE = (1e-100, 1e100)


class Features(NamedTuple):
    """Holds the features of one tensor; moments are of its finite elements in float64, complex ones as pairs.

    `projections` are inner products with fixed random signs in the order of elements, over norm; `symmetric` those with
    a product of one random vector per axis, which depends on the axis's length alone, so that permuting axes changes
    nothing; they are empty where the values are kept, which say it better. `distinct` is the number of different values
    among a sample of at most 64 elements: 1 of a constant.
    """

    numel: int
    mean: float
    mean_abs: float
    rms: float
    min: float
    max: float
    nan_count: int
    inf_count: int
    distinct: int
    projections: tuple[float, ...]
    symmetric: tuple[float, ...]


def features_of(value: Array) -> Features:
    """Returns the features of a tensor of any numeric dtype and any shape; an empty one has zeros."""
    known = features_in_order(value)
    return known._replace(symmetric=symmetric_of(value, known))


def features_in_order(value: Array) -> Features:
    """Returns the features of a tensor without the symmetric projections: one that is reshaped has the same."""
    flat = _real(value).reshape(-1)
    found = _reduced(flat, 1.0)
    if found.finite and (scale := _scale(found.min, found.max)) != 1:
        found = _reduced(flat, scale)
    if not found.finite:
        counts = found.nan_count, found.inf_count
        return Features(len(flat), 0.0, 0.0, 0.0, 0.0, 0.0, *counts, int(len(flat) > 0), (0.0,) * PROJECTIONS, ())
    norm = found.square**0.5
    return Features(
        len(flat),
        found.total / found.finite * found.scale,
        found.absolute / found.finite * found.scale,
        norm / found.finite**0.5 * found.scale,
        found.min,
        found.max,
        found.nan_count,
        found.inf_count,
        _distinct(flat, found.finite),
        tuple((found.projected / norm).tolist()) if norm else (0.0,) * PROJECTIONS,
        (),
    )


def symmetric_of(value: Array, known: Features) -> tuple[float, ...]:
    """Returns the symmetric projections of a tensor whose other features are known."""
    if known.rms == 0:
        return (0.0,) * SYMMETRIC
    value, finite = _real(value), known.numel - known.nan_count - known.inf_count
    scale = _scale(known.min, known.max)
    return _symmetric(value.reshape(-1), value.shape, scale, finite, known.rms / scale * finite**0.5)


def _real(value: Array) -> Array:
    """Returns the elements in C order, complex ones as pairs."""
    return np.ascontiguousarray(np.stack([value.real, value.imag], axis=-1) if np.iscomplexobj(value) else value)


def _scale(least: float, most: float) -> float:
    """Returns what elements are divided by: the squares of the largest numbers of float64 would overflow."""
    extent = max(-least, most)
    return 1.0 if SAFE[0] < extent < SAFE[1] or extent == 0 else extent


def _lengths(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for size in shape if size != 1)


class _Reduced(NamedTuple):
    """Holds sums over the finite elements of a tensor, each divided by `scale`; `finite` is their number."""

    scale: float
    finite: int
    total: float
    absolute: float
    square: float
    min: float
    max: float
    nan_count: int
    inf_count: int
    projected: Floats


def _reduced(flat: Array, scale: float) -> _Reduced:
    """Goes through a tensor once, in pieces that stay in a core's cache."""
    count = nan_count = inf_count = 0
    total = absolute = square = 0.0
    least, most = np.inf, -np.inf
    projected = np.zeros(PROJECTIONS)
    with np.errstate(all="ignore"):
        for start in range(0, len(flat), PIECE):
            given = flat[start : start + PIECE]
            piece = finite = given.astype(np.float64)
            ends = float(given.min()), float(given.max())
            if not isfinite(ends[1] - ends[0]):  # NaN comes through, too
                is_finite = np.isfinite(piece)
                finite = piece[is_finite]
                nans = int(np.isnan(piece).sum())
                nan_count, inf_count = nan_count + nans, inf_count + len(piece) - len(finite) - nans
                piece = np.where(is_finite, piece, 0.0)
                ends = float(finite.min(initial=np.inf)), float(finite.max(initial=-np.inf))
            count += len(finite)
            least, most = min(least, ends[0]), max(most, ends[1])
            if scale != 1.0:
                piece, finite = piece / scale, finite / scale
            part = float(finite.sum())
            total += part
            absolute += float(np.abs(finite).sum()) if ends[0] < 0 else part
            square += inner_product(piece, piece)
            projected += _projected(piece, start // BLOCK)
    return _Reduced(scale, count, total, absolute, square, least, most, nan_count, inf_count, projected)


@lru_cache(maxsize=1_000)
def sample_places(count: int) -> list[int]:
    """Returns at most 64 places among so many, in order, spread unevenly: equal steps may meet one column."""
    if count <= SAMPLE:
        return list(range(count))
    return sorted({int(count * (number * GOLDEN % 1)) for number in range(SAMPLE)})


def _distinct(flat: Array, finite: int) -> int:
    """Returns how many values there are among a sample of the finite elements."""
    wanted = sample_places(finite)
    if finite == len(flat):
        return len(set(flat[wanted].tolist()))
    found, before, at = set(), 0, 0
    for start in range(0, len(flat), PIECE):
        piece = flat[start : start + PIECE]
        is_finite = np.isfinite(piece)
        here = int(np.count_nonzero(is_finite))
        chosen = [place - before for place in wanted[at:] if place < before + here]
        if chosen:
            found |= set(piece[is_finite][chosen].tolist())
        before, at = before + here, at + len(chosen)
    return len(found)


def _projected(piece: Floats, block: int) -> Floats:
    """Returns the sums of a piece that begins with a block of this number."""
    inner, outer = _signs(BLOCK, 0), _signs(FEWEST_BLOCKS << max((block + PIECE // BLOCK - 1).bit_length() - 12, 0), 1)
    whole = len(piece) // BLOCK
    sums = np.zeros(PROJECTIONS)
    if whole:
        sums += ((piece[: whole * BLOCK].reshape(-1, BLOCK) @ inner) * outer[block : block + whole]).sum(0)
    rest = piece[whole * BLOCK :]
    for start in range(0, len(rest), SHORT):
        part = rest[start : start + SHORT]
        sums += (part @ inner[start : start + len(part)]) * outer[block + whole]
    return sums


def _symmetric(flat: Array, shape: tuple[int, ...], scale: float, finite: int, norm: float) -> tuple[float, ...]:
    """Returns the symmetric projections: the last axes are reduced in one product, piece by piece, then the others."""
    sizes = _lengths(shape)
    first = len(sizes)
    while first and (first == len(sizes) or prod(sizes[first - 1 :]) <= 2 * BLOCK):
        first -= 1
    weights = _joint_weights(sizes[first:])
    rows = flat.reshape(-1, len(weights))
    sums = np.empty((len(rows), SYMMETRIC))
    step = max(PIECE // len(weights), 1)
    for start in range(0, len(rows), step):
        piece = rows[start : start + step].astype(np.float64)
        if finite < len(flat):
            piece = np.where(np.isfinite(piece), piece, 0.0)
        if scale != 1.0:
            piece /= scale
        np.matmul(piece, weights, out=sums[start : start + step])
    numbers = []
    for which in range(SYMMETRIC):
        reduced = sums[:, which].reshape(sizes[:first])
        while reduced.ndim:
            reduced = reduced @ _weights(reduced.shape[-1], which)
        numbers.append(float(reduced) / norm)
    return tuple(numbers)


@lru_cache(maxsize=64)
def _joint_weights(sizes: tuple[int, ...]) -> Floats:
    """Returns the products of the random vectors of some axes: a row for each element of theirs."""
    joint = np.ones((1, SYMMETRIC))
    for size in sizes:
        vectors = np.stack([_weights(size, which) for which in range(SYMMETRIC)], axis=1)
        joint = (joint[:, None] * vectors).reshape(-1, SYMMETRIC)
    return joint


@lru_cache(maxsize=64)
def _signs(length: int, which: int) -> Floats:
    generator = np.random.default_rng([SEED, which])
    return np.asarray(generator.integers(0, 2, (length, PROJECTIONS)) * 2.0 - 1.0)


@lru_cache(maxsize=256)
def _weights(length: int, which: int) -> Floats:
    return np.asarray(np.random.default_rng([SEED, 2 + which, length]).standard_normal(length))
