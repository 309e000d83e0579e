"""Reduces a tensor to numbers by which it is found again in another execution: some see the order of elements.

Two tensors that hold the same elements in any order have the same moments. Reshaped ones have the same projections,
too, and permuted ones the same symmetric projections. Under noise of relative size e, all differ by about e.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.generic]
Floats = npt.NDArray[np.float64]
BLOCK = 4096
PROJECTIONS = 6
SYMMETRIC = 3
SEED = 20_250


class Features(NamedTuple):
    """Holds the features of one tensor; moments are of its finite elements in float64, complex ones as pairs.

    `projections` are inner products with fixed random signs in the order of elements, over norm; `symmetric` those with
    a product of one random vector per axis, which depends on the axis's length alone, so that permuting axes changes
    nothing. `distinct` is the number of different values among a sample of at most 64 elements: 1 of a constant.
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
    shape = value.shape
    if np.iscomplexobj(value):
        value = np.stack([value.real, value.imag], axis=-1)
        shape = value.shape
    flat = np.ascontiguousarray(value).reshape(-1).astype(np.float64)
    is_finite = np.isfinite(flat)
    nan_count = inf_count = 0
    if not is_finite.all():
        nan_count = int(np.isnan(flat).sum())
        inf_count = len(flat) - nan_count - int(is_finite.sum())
        finite = flat[is_finite]
        flat = np.where(is_finite, flat, 0.0)
    else:
        finite = flat
    if not len(finite):
        zeros = (0.0,) * PROJECTIONS, (0.0,) * SYMMETRIC
        return Features(len(flat), 0.0, 0.0, 0.0, 0.0, 0.0, nan_count, inf_count, int(len(flat) > 0), *zeros)
    extent = float(np.abs(finite).max())
    scale = extent if extent > 0 else 1.0  # squares of the largest numbers of float64 would overflow
    unit = flat / scale
    norm = float(np.sqrt(unit @ unit))
    return Features(
        len(flat),
        float(finite.mean()),
        float(np.abs(finite).mean()),
        norm / len(finite) ** 0.5 * scale,
        float(finite.min()),
        float(finite.max()),
        nan_count,
        inf_count,
        _distinct(finite),
        _projected(unit, norm),
        _symmetric(unit.reshape(shape), norm),
    )


def _distinct(finite: Floats) -> int:
    step = max(len(finite) // 64, 1)
    return len(np.unique(finite[::step][:64]))


def _projected(flat: Floats, norm: float) -> tuple[float, ...]:
    if norm == 0:
        return (0.0,) * PROJECTIONS
    inner, outer = _signs(BLOCK, 0), _signs(len(flat) // BLOCK + 1, 1)
    whole = len(flat) // BLOCK * BLOCK
    sums = np.zeros(PROJECTIONS)
    if whole:
        sums += ((flat[:whole].reshape(-1, BLOCK) @ inner) * outer[:-1]).sum(0)
    if whole < len(flat):
        sums += (flat[whole:] @ inner[: len(flat) - whole]) * outer[-1]
    return tuple((sums / norm).tolist())


def _symmetric(value: Floats, norm: float) -> tuple[float, ...]:
    if norm == 0:
        return (0.0,) * SYMMETRIC
    numbers = []
    value = value.reshape([size for size in value.shape if size != 1])
    for which in range(SYMMETRIC):
        reduced = value
        while reduced.ndim:
            reduced = reduced @ _weights(reduced.shape[-1], which)
        numbers.append(float(reduced) / norm)
    return tuple(numbers)


@lru_cache(maxsize=64)
def _signs(length: int, which: int) -> Floats:
    generator = np.random.default_rng([SEED, which])
    return np.asarray(generator.integers(0, 2, (length, PROJECTIONS)) * 2.0 - 1.0)


@lru_cache(maxsize=256)
def _weights(length: int, which: int) -> Floats:
    return np.asarray(np.random.default_rng([SEED, 2 + which, length]).standard_normal(length))
