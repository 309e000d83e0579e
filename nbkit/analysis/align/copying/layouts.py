"""Makes of parameters of one side what one of the other side may be: transposed, a part, several in one, reordered."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha1
from itertools import permutations
from math import gcd, prod

import numpy as np

from nbkit.analysis.align.copying.uses import GAIN, SHIFT, TABLE
from nbkit.trace.executions.execution import Array

# So many parameters stand in one, at most.
MOST_PARTS = 3
AS_IT_IS, TRANSPOSED = "as it is", "transposed"


@dataclass(frozen=True)
class Source:
    """Holds a parameter of the left side: its number among those of its side, its role, name and values."""

    number: int
    role: str
    name: str
    value: Array
    is_turned: bool | None = None


@dataclass(frozen=True)
class Target:
    """Holds what is to be filled: the shape of a parameter of the right side, and how its product reads it."""

    shape: tuple[int, ...]
    is_turned: bool | None = None


@dataclass(frozen=True, eq=False)
class Option:
    """Holds values for a parameter of the right side, what they are made of, and how in words.

    `groups` is how often the parts follow each other, `start` and `stop` which rows of each group are taken where
    `part` is not null; `place` says which part or parts, the same for the weight and the bias of one layer.
    """

    sources: tuple[Source, ...]
    value: Array
    how: str
    groups: int = 1
    part: tuple[int, int] | None = None
    total: int = 0

    @cached_property
    def digest(self) -> bytes:
        """Returns a hash of the values, by which equal ones are known."""
        return sha1(np.ascontiguousarray(self.value).tobytes()).digest()

    @cached_property
    def layout(self) -> tuple[str, int]:
        """Returns the layout in words without what depends on the parameter's name."""
        return self.how.partition(":")[0], self.groups


def options_of(
    target: Target, sources: Sequence[Source], lengths: Collection[int], divisors: Collection[int]
) -> Iterator[Option]:
    """Yields what the sources may be as the target, the simplest first.

    `lengths` are those of the other parameters that may come from the same source, in the axes of theirs; `divisors`
    are numbers of groups, such as heads, that parts may be interleaved by.
    """
    for source in sources:
        yield from _whole(target, source)
    for source in sources:
        yield from _parts(target, source, lengths, divisors)
    for count in range(2, MOST_PARTS + 1):
        for chosen in permutations(sources, count):
            if sum(source.value.size for source in chosen) == prod(target.shape):
                yield from _joined(target, chosen, divisors)


def _whole(target: Target, source: Source) -> Iterator[Option]:
    plain = _squeezed(target.shape)
    for how, view in _views(target, source):
        if view.shape == plain:
            yield Option((source,), view.reshape(target.shape), how)
    value = source.value
    is_flat = value.size == prod(target.shape) and value.shape[:1] == target.shape[:1]
    if is_flat and _squeezed(value.shape) not in (plain, plain[::-1]) and value.ndim != len(target.shape):
        yield Option((source,), value.reshape(target.shape), "reshaped")


def _views(target: Target, source: Source) -> Iterator[tuple[str, Array]]:
    """Yields the values as they are and with their last two axes exchanged, as far as the products allow it."""
    value = source.value.reshape(_squeezed(source.value.shape))
    is_clear = source.is_turned is not None and target.is_turned is not None
    if not is_clear or source.is_turned == target.is_turned or value.ndim != 2:
        yield AS_IT_IS, value
    # Tables and what is added have their channels last.
    is_product = source.role not in (SHIFT, GAIN, TABLE)
    if value.ndim in (2, 3) and is_product and (not is_clear or source.is_turned != target.is_turned):
        yield TRANSPOSED, value.swapaxes(-1, -2)


def _parts(target: Target, source: Source, lengths: Collection[int], divisors: Collection[int]) -> Iterator[Option]:
    plain = _squeezed(target.shape)
    for how, view in _views(target, source):
        axis = _other_axis(view.shape, plain)
        if axis is None or view.shape[axis] <= plain[axis]:
            continue
        total, size = view.shape[axis], plain[axis]
        for sizes in _splits(total, size, lengths):
            for groups in _groups(sizes, divisors):
                steps = [length // groups for length in sizes]
                grouped = view.reshape(*view.shape[:axis], groups, total // groups, *view.shape[axis + 1 :])
                for at in sorted({sum(steps[:place]) for place, length in enumerate(sizes) if length == size}):
                    stop = at + size // groups
                    taken = grouped.take(range(at, stop), axis + 1).reshape(target.shape)
                    text = f"part [{at}:{stop}] of {total // groups}" + (f" in each of {groups}" if groups > 1 else "")
                    text += "" if how == AS_IT_IS else f", {how}"
                    yield Option((source,), taken, text, groups, (at, stop), total // groups)


def _splits(total: int, size: int, lengths: Collection[int]) -> list[tuple[int, ...]]:
    """Returns the lengths of two or three parts, one of which has the size, in each order."""
    found: dict[tuple[int, ...], None] = {}
    for first in sorted({size, *lengths}, reverse=True):
        if first + size == total:
            found |= dict.fromkeys(permutations((first, size)))
        second = total - size - first
        if second > 0 and second in {size, *lengths}:
            found |= dict.fromkeys(permutations((first, second, size)))
    return list(found)


def _joined(target: Target, chosen: Sequence[Source], divisors: Collection[int]) -> Iterator[Option]:
    plain = _squeezed(target.shape)
    seen = list(zip(*(_views(target, source) for source in chosen), strict=False))
    for views in seen:
        axes = {_other_axis(view.shape, plain) for _, view in views}
        axis = next(iter(axes))
        if len(axes) != 1 or axis is None or sum(view.shape[axis] for _, view in views) != plain[axis]:
            continue
        sizes = [view.shape[axis] for _, view in views]
        for groups in _groups(sizes, divisors):
            pieces = [
                view.reshape(*view.shape[:axis], groups, view.shape[axis] // groups, *view.shape[axis + 1 :])
                for _, view in views
            ]
            value = np.concatenate(pieces, axis + 1).reshape(target.shape)
            text = "joined" if groups == 1 else f"interleaved by {groups}"
            yield Option(tuple(chosen), value, text if views[0][0] == AS_IT_IS else f"{text}, {TRANSPOSED}", groups)


def reordered(option: Option, heads: int, axis: int, *, to_neighbors: bool) -> Option:
    """Returns an option with the channels of each head in the order of another rotary layout.

    Halves become neighbors (channels i and i + D/2 of a head follow each other), or neighbors halves.
    """
    split = (heads, 2, -1) if to_neighbors else (heads, -1, 2)
    order = np.arange(option.value.shape[axis]).reshape(split).swapaxes(1, 2).reshape(-1)
    what = "halves to neighbors" if to_neighbors else "neighbors to halves"
    how = f"{option.how}, channels of {heads} heads from {what}"
    return Option(option.sources, option.value.take(order, axis), how, option.groups, option.part, option.total)


def _groups(sizes: Sequence[int], divisors: Collection[int]) -> list[int]:
    common = gcd(*sizes)
    return sorted({1, common, *(each for each in divisors if common % each == 0)})


def _other_axis(shape: tuple[int, ...], other: tuple[int, ...]) -> int | None:
    """Returns the one axis in which two shapes differ; null where there is none or another."""
    if len(shape) != len(other):
        return None
    axes = [axis for axis, (one, two) in enumerate(zip(shape, other, strict=True)) if one != two]
    return axes[0] if len(axes) == 1 else None


def _squeezed(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for size in shape if size != 1)
