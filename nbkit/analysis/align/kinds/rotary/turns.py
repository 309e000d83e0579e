"""Turn says by which angles, and in which layout of pairs, a known value has been turned to give another one.

A rotary embedding turns pairs of elements of a head: i and i + r/2 in the half-split layout, 2i and 2i + 1 in the
interleaved one, each by position times base^(-2i/r). Lengths of pairs stay, which tells the layout without the angles.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nbkit.analysis.align.kinds.case import Case, Floats, at, floats, norm
from nbkit.analysis.align.region import Array

Complexes = npt.NDArray[np.complex128]
LAYOUTS = ("half-split", "interleaved")
# Elements of a sample, which keeps all positions up to so many, and whole heads.
SAMPLED, POSITIONS = 60_000, 512


@dataclass(frozen=True)
class Turn:
    """Holds x, turned into y in one layout; `steps` are the unit complex numbers of each position and pair.

    `axis` is that of positions, `width` the number of elements of a head that are turned. `x`, `left` and `right` are
    samples with all axes and few batches and heads.
    """

    name: str
    x: Floats
    left: Floats
    right: Floats
    axis: int
    width: int
    layout: str
    steps: Complexes


def pairs(values: Floats, layout: str, width: int) -> Complexes:
    """Returns the pairs of the first `width` elements of a head as complex numbers."""
    if layout == "half-split":
        return np.asarray(values[..., : width // 2] + 1j * values[..., width // 2 : width])
    return np.asarray(values[..., 0:width:2] + 1j * values[..., 1:width:2])


def unpaired(found: Complexes, layout: str, rest: Floats) -> Floats:
    """Returns pairs as elements, before the rest of the head, which is not turned."""
    width = 2 * found.shape[-1]
    made = np.concatenate([found.real, found.imag], axis=-1) if layout == "half-split" else np.empty(rest.shape)
    if layout == "interleaved":
        made = made[..., :width]
        made[..., 0::2], made[..., 1::2] = found.real, found.imag
    return np.concatenate([made, rest[..., width:]], axis=-1)


def turned(x: Floats, steps: Complexes, layout: str, axis: int) -> Floats:
    """Returns x turned by steps [position, pair] in a layout."""
    width = 2 * steps.shape[-1]
    return unpaired(pairs(x, layout, width) * spread(steps, x.ndim, axis), layout, x)


def spread(steps: Complexes, rank: int, axis: int) -> Complexes:
    """Returns [position, pair] with as many axes as x has."""
    shape = [1] * rank
    shape[axis], shape[-1] = steps.shape
    return steps.reshape(shape)


def turns(case: Case) -> list[Turn]:
    """Returns each way in which the left one is a known value, turned."""
    return case.once("turns", lambda: list(_turns(case)))


def _turns(case: Case) -> Iterator[Turn]:
    if not case.is_same_shape or not case.is_finite or case.is_weight or len(case.shape) < 2:
        return
    for name, x, left, right in _samples(case):
        if norm(left - x) <= 1e-6 * norm(x) or abs(norm(left) / max(norm(x), 1e-300) - 1) > 1e-2:
            continue
        for axis in position_axes(x.ndim):
            for width in widths(x.shape[-1]):
                for layout in LAYOUTS:
                    steps = fitted(x, left, layout, width, axis, case.limit)
                    if steps is not None:
                        yield Turn(name, x, left, right, axis, width, layout, steps)


def fitted(x: Floats, y: Floats, layout: str, width: int, axis: int, limit: float) -> Complexes | None:
    """Returns the steps by which x is turned into y; null if that is not what was done."""
    if width < x.shape[-1] and norm((y - x)[..., width:]) > limit * norm(y - x):
        return None
    before, after = pairs(x, layout, width), pairs(y, layout, width)
    lengths = np.abs(before)
    if np.linalg.norm(np.abs(after) - lengths) > limit * norm(y - x):
        return None
    others = tuple(one for one in range(x.ndim - 1) if one != axis)
    sums = (after * before.conj()).sum(axis=others)
    steps = sums / np.maximum(np.abs(sums), 1e-300)
    left = norm(turned(x, steps, layout, axis) - y)
    return steps if left <= limit * norm(y - x) else None


def _samples(case: Case) -> Iterator[tuple[str, Floats, Floats, Floats]]:
    """Yields the samples of a known value and both sides, with heads as they are or split off the last axis."""
    names = {one.name for one, view in case.shaped(case.shape) if one.kind != "parameter" and _keeps_rows(case, view)}
    for shape in _head_shapes(case.shape) if names else ():
        for one, view in case.shaped(shape):
            if one.name not in names:
                continue
            left, right = case.left.reshape(shape), case.right.reshape(shape)
            few = _few(shape)
            yield one.name, floats(view[few]), left[few], right[few]


def _keeps_rows(case: Case, view: Array) -> bool:
    """Returns whether a few rows of the left one are as long as those of a value, as turned ones are."""
    if not np.issubdtype(view.dtype, np.floating):
        return False
    width = view.shape[-1]
    rows = np.unique(case.places // width)[:32]
    chosen = (rows[:, None] * width + np.arange(width)).reshape(-1)
    lengths = [norms(value.reshape(-1, width)) for value in (at(view, chosen), case.left.reshape(-1)[chosen])]
    return norm(lengths[1] - lengths[0]) <= 0.05 * norm(lengths[0])


def norms(rows: Floats) -> Floats:
    """Returns the 2-norm of each row."""
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows)))


def _head_shapes(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Returns the shape, and those with heads split off the last axis."""
    if len(shape) == 4:
        return [shape]
    last = shape[-1]
    sizes = [size for size in range(last - 2, 1, -2) if last % size == 0 and (size >= 8 or last <= 64)]
    return [shape, *((*shape[:-1], last // size, size) for size in sizes)]


def _few(shape: tuple[int, ...]) -> tuple[slice, ...]:
    """Returns a slice that keeps at most so many elements: few of the first axis, then of all but the last."""
    kept = list(shape)
    for axis, least in [(0, 1), *((one, 2) for one in range(1, len(shape) - 1)), (len(shape) - 2, 64)]:
        if axis == len(shape) - 1 or (len(shape) == 2 and axis == 0):
            least = 64
        size = int(np.prod(kept))
        if size > SAMPLED:
            kept[axis] = max(min(kept[axis], least), kept[axis] * SAMPLED // size)
    return tuple(slice(0, size) for size in kept)


def position_axes(rank: int) -> list[int]:
    """Returns the axes that may be that of positions."""
    return [rank - 2, rank - 3] if rank >= 3 else [0]


def widths(size: int) -> list[int]:
    """Returns how many elements of a head may be turned: all, or a usual part."""
    parts = [size, size * 3 // 4, size // 2, size * 2 // 5, size // 4]
    return list(dict.fromkeys(part for part in parts if part >= 2 and part % 2 == 0))
