"""Tests whether one side pairs the elements of a head half-split, and the other one interleaved."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from nbkit.analysis.align.kinds.case import Case, Floats, divisors, norm
from nbkit.analysis.align.kinds.registry import Kinds, kind_test
from nbkit.analysis.align.kinds.rotary.turns import LAYOUTS, Complexes, Turn, spread, turned, turns

NAME = "rotary_layout"
LARGEST_HEAD = 1024


@kind_test(NAME, 70)
def rotary_layout(case: Case) -> Kinds:
    """Tests the other order of elements within heads, then a known value turned by these angles in the other layout."""
    rank = case.left.ndim
    for axis in [rank - 1] if rank > 2 else reversed(range(rank)):
        yield from _reordered(case, axis)
    for turn in turns(case):
        yield from _turned(case, turn)


def _reordered(case: Case, axis: int) -> Kinds:
    """Tests the left one with the halves of each head along an axis interleaved, and the reverse."""
    length, left = case.shape[axis], case.left.reshape(-1)
    stride = int(np.prod(case.shape[axis + 1 :], dtype=np.int64))
    indices = case.places // stride % length
    for size, width in _sizes(length):
        for first, second in (LAYOUTS, LAYOUTS[::-1]):
            order = _order(length, size, width, first)
            if not case.may_be_at(left[case.places + (order[indices] - indices) * stride]):
                continue
            part = "" if width == size else f", the first {width} of each"
            message = (
                f"The right one has the elements of each head of {size} {second}, the left one {first}"
                f" (axis {axis}{part})."
            )
            yield case.told(NAME, message, np.take(case.left, order, axis=axis))


def _sizes(length: int) -> list[tuple[int, int]]:
    """Returns sizes of heads and how many elements of each are turned; of two elements both layouts are the same."""
    heads = [size for size in reversed(divisors(length)) if size <= LARGEST_HEAD]
    found = [(size, size // part) for size in heads for part in (1, 2, 4) if size % part == 0]
    return [(size, width) for size, width in found if width % 2 == 0 and width >= 4]


def _order(length: int, size: int, width: int, layout: str) -> npt.NDArray[np.intp]:
    """Returns where each element comes from that is not in this layout any more, but in the other one."""
    inner = np.arange(width)
    inner = inner.reshape(2, -1).T.reshape(-1) if layout == "half-split" else inner.reshape(-1, 2).T.reshape(-1)
    head = np.concatenate([inner, np.arange(width, size)])
    return np.asarray((np.arange(0, length, size)[:, None] + head).reshape(-1))


def _turned(case: Case, turn: Turn) -> Kinds:
    other = LAYOUTS[1 - LAYOUTS.index(turn.layout)]
    part = "" if turn.width == turn.x.shape[-1] else f" ({turn.width} of {turn.x.shape[-1]} elements)"
    text = f"The rotary embedding of {turn.name}{part} is {turn.layout} on the left, {other} on the right"
    for how, candidate in _candidates(turn) if norm(turn.right - turn.left) else ():
        yield case.fits(NAME, f"{text}{how}.", candidate, turn.right, turn.left)


def _candidates(turn: Turn) -> Iterator[tuple[str, Floats]]:
    """Yields x turned in the other layout, then with tables of cosines and sines in one and pairs in the other."""
    other = LAYOUTS[1 - LAYOUTS.index(turn.layout)]
    yield "", turned(turn.x, turn.steps, other, turn.axis)
    yield f", with tables that are {turn.layout}", _mixed(turn, turn.layout, other)
    yield f", with pairs that are {turn.layout}", _mixed(turn, other, turn.layout)


def _mixed(turn: Turn, tables: str, rotation: str) -> Floats:
    """Returns x * cos + rotate(x) * sin, with tables in one layout and the rotation in another."""
    x, width = turn.x[..., : turn.width], turn.width
    steps = _tables(spread(turn.steps, turn.x.ndim, turn.axis), tables)
    rotated = np.empty(x.shape)
    if rotation == "half-split":
        rotated[..., : width // 2], rotated[..., width // 2 :] = -x[..., width // 2 :], x[..., : width // 2]
    else:
        rotated[..., 0::2], rotated[..., 1::2] = -x[..., 1::2], x[..., 0::2]
    return np.concatenate([x * steps.real + rotated * steps.imag, turn.x[..., width:]], axis=-1)


def _tables(steps: Complexes, layout: str) -> Complexes:
    if layout == "half-split":
        return np.concatenate([steps, steps], axis=-1)
    return np.repeat(steps, 2, axis=-1)
