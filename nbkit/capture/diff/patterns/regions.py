"""Patterns of where a result is wrong, all else being right: from an index on, whole rows, a block, single elements.

They are named only where there is a gap between what is wrong and what is right: of results that are too inexact
everywhere, only the worst elements are judged wrong, and where these are says nothing.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from nbkit.capture.diff.patterns.candidate import Found, Wrong
from nbkit.numerics.difference_patterns import MOST
from nbkit.numerics.noise_ratio import THRESHOLD
from nbkit.numerics.precision import Array

# The noise ratio of what is right, and how many times as far off half of what is wrong must be.
RIGHT, GAP = 3.0, 8.0
# The noise ratio that a correct kernel may have at the most.
DOUBTFUL = THRESHOLD
# The share of a region that is wrong: zeros may be right where they stand.
FILLED, FILLED_BY_ZEROS = 0.75, 0.25
# Of the slices along an axis, unless all from one on are wrong; and elements before one that all those after it are.
MOST_ROWS, FEWEST_RIGHT = 0.5, 8
# More elements than these are not single ones, nor is more than this share of all.
MOST_ELEMENTS, LARGEST_SHARE = 16, 0.05


class Region(NamedTuple):
    """What is wrong, as a slice per axis, or chosen indices of one axis."""

    pattern: str
    evidence: dict[str, Any]
    inside: Array  # True at its elements


def region_pattern(wrong: Wrong) -> Found | None:
    """The region outside of which all is right; None where that is the whole, or is mostly right itself."""
    is_off = _off(wrong)
    if is_off is None:
        return None
    for region in _regions(is_off, wrong.actual.reshape(wrong.shape)):
        inside = region.inside.reshape(-1)
        content, share = _content(wrong.actual[inside]), is_off.reshape(-1)[inside].mean()
        if region.pattern == "elements" or share >= (FILLED if content == "wrong" else FILLED_BY_ZEROS):
            outside = float(f"{wrong.ratios[~inside].max(initial=0.0):.3g}")
            figures = {"explained_fraction": 1.0, "residual_noise_ratio": outside}
            fraction = float(f"{inside.mean():.6g}")
            return Found(
                region.pattern, {**region.evidence, "content": content, "element_fraction": fraction, **figures}
            )
    return None


def _off(wrong: Wrong) -> Array | None:
    """Which elements are wrong, in the result's shape; None unless all others are right by a wide margin."""
    limit = min(max(float(np.median(wrong.ratios[wrong.wrong])) / GAP**2, RIGHT), DOUBTFUL)
    is_off = wrong.wrong | (wrong.ratios > limit)
    if is_off.all() or not wrong.shape:
        return None
    right = float(wrong.ratios[~is_off].max())
    is_apart = np.median(wrong.ratios[is_off]) >= GAP * max(right, 1.0)
    return is_off.reshape(wrong.shape) if is_apart else None


def _regions(is_off: Array, actual: Array) -> Iterator[Region]:
    """What may be wrong as a whole, the simplest first: what is zero may also be where right elements are zero."""
    shape, count = is_off.shape, int(is_off.sum())
    axes = range(len(shape))
    present = [np.asarray(is_off.any(tuple(other for other in axes if other != axis))) for axis in axes]
    bounds = [[int(one.argmax()), int(len(one) - one[::-1].argmax())] for one in present]
    limited = [axis for axis, one in enumerate(present) if not one.all()]
    yield from (region for region in _in_memory(is_off) if is_off[region.inside].all())
    is_few = count <= MOST_ELEMENTS and count <= max(LARGEST_SHARE * is_off.size, 1)
    for axis in limited:
        slices = np.moveaxis(actual, axis, 0)[present[axis]]
        # A slice of zeros reaches as far as the tensor does.
        if len(limited) == 1 or (count > 1 and not (slices != 0).any()):
            yield from _along(axis, present[axis], is_off, is_few)
    if len(limited) > 1 and not (is_few and count < 4):
        inside = np.zeros(shape, dtype=bool)
        inside[tuple(slice(start, end) for start, end in bounds)] = True
        if not inside.all():
            yield Region("block", {"bounds": bounds}, inside)
    if is_few:
        yield _elements(is_off)
    yield from _in_memory(is_off)


def _along(axis: int, present: Array, is_off: Array, is_few: bool) -> Iterator[Region]:
    """Slices along an axis: from an index on, or some of them."""
    indices = np.flatnonzero(present)
    first, size = int(indices[0]), len(present)
    inside = np.zeros(is_off.shape, dtype=bool)
    np.moveaxis(inside, axis, 0)[indices] = True
    is_single = is_off.size == size
    if len(indices) == size - first:
        yield Region("beyond", {"axis": axis, "index": first}, inside)
    elif len(indices) <= MOST_ROWS * size and not (is_single and (is_few or len(indices) != indices[-1] - first + 1)):
        yield Region("rows", {"axis": axis, "indices": indices[:MOST].tolist(), "count": len(indices)}, inside)


def _elements(is_off: Array) -> Region:
    places = np.argwhere(is_off)
    return Region("elements", {"indices": places[:MOST].tolist(), "count": len(places)}, is_off)


def _in_memory(is_off: Array) -> Iterator[Region]:
    """All elements from one on, in the order of the flat tensor; an index of the first axis is told as that."""
    line = is_off.reshape(-1)
    first = int(line.argmax())
    is_index = first % int(np.prod(is_off.shape[1:], dtype=np.int64)) == 0
    if not is_index and first >= FEWEST_RIGHT and len(line) - first >= FEWEST_RIGHT:
        inside = np.zeros(line.shape, dtype=bool)
        inside[first:] = True
        yield Region("beyond", {"axis": None, "index": first}, inside.reshape(is_off.shape))


def _content(values: Array) -> str:
    if not (values != 0).any():
        return "zero"
    return "NaN" if np.isnan(values).all() else "wrong"
