"""Case prepares a region for the tests of kinds: values in float64, what rounding may do, and samples of elements."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from nbkit.analysis.align.region import Array, Kind, Piece, Region
from nbkit.numerics.precision import precision_of

Floats = npt.NDArray[np.float64]
T = TypeVar("T")
# What a kind may leave of a difference, by the coarsest dtype: of float32, float16 and bfloat16.
LIMITS = ((1e-6, 0.01), (2e-3, 0.03), (np.inf, 0.1))
MOST_LEFT = 0.2
# A difference that is less than this many eps of the values is rounding.
CLEAR = 1.0
# An element may be off by so many eps; so few may be far off; of so many no more than the size may be known, and of
# numbers of one scale so many are as small beside their median as a share.
ROUNDINGS, STRAY, MOST_ROUNDED, SCALED = 100.0, 0.005, 0.1, 10.0
SAMPLE = 2048
SEED = 11
# Below this a score is masked; what is masked is so many times as large as other such, at most.
MASKED, MASKS = -1e4, 4.0
FEWEST = 8
# Values inside a region and near it that are tried, and so many of one shape where it is pairs that are tried.
NEAREST, PAIRED = 24, 8
# Rows that are looked at where a kind is told by rows.
ROWS = 64


@dataclass(frozen=True)
class Known:
    """Holds a value that both sides agree on, and which of them read it."""

    name: str
    kind: str
    value: Array
    is_left: bool = False
    is_right: bool = False
    is_inner: bool = False  # made inside the region by one side, of what both read


@dataclass(frozen=True)
class CaseSide:
    """Holds one side of a case: its name and the other side's, both sides' values, and its own ops and inputs."""

    name: str
    other: str
    values: Floats
    beside: Floats
    ops: tuple[Piece, ...]
    inputs: tuple[Piece, ...]

    @property
    def inner(self) -> list[tuple[str, Array]]:
        """Returns the values made inside, without the pair's own, by name."""
        return [(piece.result.name, piece.value) for piece in self.ops[:-1] if piece.value is not None]


class Case:
    """Holds a region as the tests of kinds read it.

    `left` and `right` are float64, complex ones as pairs; elements that are NaN, Inf or masked in the same way on both
    sides are 0 on both. `limit` is what a kind may leave of the difference. `with_inner` adds to the known values those
    made inside, of which a fused op on the other side has none.
    """

    def __init__(self, region: Region, *, with_inner: bool = False) -> None:
        self.region, self.with_inner = region, with_inner
        self.left, self.right = _comparable(floats(region.left), floats(region.right))
        self.is_same_shape = self.left.shape == self.right.shape
        self.memo: dict[object, Any] = {}  # what several tests need
        # Masked on one side alone is as good as infinite.
        self.is_finite = all(np.isfinite(one).all() and not _masked(one).any() for one in (self.left, self.right))

    @property
    def shape(self) -> tuple[int, ...]:
        """Returns the shape of both."""
        return self.left.shape

    @property
    def is_state(self) -> bool:
        """Returns whether the pair is a parameter or a buffer."""
        return self.region.kind in ("parameter", "buffer")

    @property
    def is_weight(self) -> bool:
        """Returns whether the pair is no result of an op."""
        return self.is_state or self.region.kind == "constant"

    @property
    def is_boolean(self) -> bool:
        """Returns whether the left one holds truth values."""
        return self.region.left.dtype == np.bool_

    @cached_property
    def size(self) -> float:
        """Returns the larger 2-norm of the two."""
        return max(norm(self.left), norm(self.right))

    @cached_property
    def is_plain(self) -> bool:
        """Returns whether each side is an activation of one number throughout, as which nearly all kinds would do."""
        is_float = np.issubdtype(self.region.left.dtype, np.floating)
        if self.is_weight or not is_float or self.left.size < 2:
            return False
        return all(bool((one == one.flat[:1]).all()) for one in (self.left, self.right))

    @cached_property
    def distance(self) -> float:
        """Returns the 2-norm of the difference; infinite where shapes differ."""
        return norm(self.right - self.left) if self.is_same_shape else np.inf

    @cached_property
    def eps(self) -> float:
        """Returns the eps of the coarsest dtype in the region."""
        region = self.region
        pieces = (*region.left_inputs, *region.right_inputs, *region.left_ops, *region.right_ops)
        dtypes = {piece.result.dtype for piece in pieces} | {str(region.left.dtype), str(region.right.dtype)}
        precisions = [precision for dtype in dtypes if (precision := precision_of(dtype)) is not None]
        return max([precision.eps for precision in precisions], default=2.0**-52)

    @cached_property
    def limit(self) -> float:
        """Returns the largest share of the difference that a kind may leave."""
        least = next(limit for eps, limit in LIMITS if self.eps <= eps)
        if not np.isfinite(self.distance):
            return least
        return float(np.clip(3 * self.eps * self.size / max(self.distance, 1e-300), least, MOST_LEFT))

    def once(self, key: object, make: Callable[[], T]) -> T:
        """Returns what was made under a key, made at the first call."""
        if key not in self.memo:
            self.memo[key] = make()
        found: T = self.memo[key]
        return found

    @property
    def is_clear(self) -> bool:
        """Returns whether the difference is beyond what rounding does."""
        return self.distance > CLEAR * self.eps * self.size

    @property
    def is_comparable(self) -> bool:
        """Returns whether both have one shape and finite values that differ by more than rounding."""
        return self.is_same_shape and self.is_finite and self.is_clear

    @property
    def has_rows(self) -> bool:
        """Returns whether both are comparable results of an op, with rows of several elements."""
        return self.is_comparable and not self.is_weight and len(self.shape) > 1 and self.shape[-1] >= 4

    @cached_property
    def sides(self) -> tuple[CaseSide, CaseSide]:
        """Returns the left side and the right one."""
        region, left, right = self.region, self.left, self.right
        return (
            CaseSide("left", "right", left, right, region.left_ops, region.left_inputs),
            CaseSide("right", "left", right, left, region.right_ops, region.right_inputs),
        )

    @cached_property
    def inner(self) -> list[tuple[str, Array]]:
        """Returns the values that both sides make inside, the left side's first."""
        return [one for side in self.sides for one in side.inner]

    @cached_property
    def places(self) -> npt.NDArray[np.intp]:
        """Returns flat positions that are looked at first, half of them where the two differ."""
        generator = np.random.default_rng(SEED)
        count = self.left.size
        if count <= SAMPLE:
            return np.arange(count)
        chosen = generator.integers(0, count, SAMPLE // 2)
        if self.is_same_shape:
            error = np.abs(self.right - self.left).reshape(-1)
            wrong = np.flatnonzero(error > 0.1 * norm(error) / len(error) ** 0.5)
            chosen = np.concatenate([chosen, generator.choice(wrong, SAMPLE // 2)]) if len(wrong) else chosen
        return np.unique(chosen)

    def may_be_at(self, values: Floats, side: CaseSide | None = None) -> bool:
        """Returns whether values for the few places are those of a side there, of the right one if none is given."""
        side = side or self.sides[1]
        wanted = side.values.reshape(-1)[self.places]
        beside = side.beside.reshape(-1)[self.places] if self.is_same_shape else 0.0
        return norm(wanted - values) <= 2 * self.limit * norm(wanted - beside)

    def told(self, name: str, message: str, candidate: Array) -> Kind | None:
        """Returns the kind if the candidate explains the difference, where shapes differ all of it; null otherwise.

        A candidate is a view of any shape, with the right one's elements in order.
        """
        if not self.may_be_at(at(candidate, self.places)):
            return None
        beside = self.left if self.is_same_shape else np.zeros(1)
        return self.fits(name, message, floats(candidate).reshape(self.right.shape), self.right, beside)

    def fits(self, name: str, message: str, candidate: Floats, wanted: Floats, beside: Floats) -> Kind | None:
        """Returns the kind if a candidate for some rows of one side explains how they differ from the other's."""
        rest = self.rest(candidate, wanted, beside)
        return Kind(name, message, rest) if rest <= self.limit else None

    def rest(self, candidate: Floats, wanted: Floats, beside: Floats) -> float:
        """Returns what a candidate for one side leaves of the difference; infinite if it does not hold throughout."""
        rest = norm(wanted - candidate) / max(norm(wanted - beside), 1e-300)
        return rest if rest > MOST_LEFT or self.holds(candidate, wanted) else np.inf

    def holds(self, candidate: Floats, wanted: Floats) -> bool:
        """Returns whether a candidate is what is wanted element by element, whatever their sizes, within rounding.

        Small elements may be off by what is rounding beside the others, as where sums cancel, if no more of them are
        than are that small among numbers of one scale: of many decades a norm sees the largest ones alone.
        """
        rest, size = np.abs(wanted - candidate).reshape(-1), np.abs(wanted).reshape(-1)
        is_off = rest > ROUNDINGS * self.eps * size
        if not is_off.any():
            return True
        is_far = rest > ROUNDINGS * self.eps * norm(wanted) / size.size**0.5
        allowed = SCALED * float(size[is_off].max()) / max(float(np.median(size)), 1e-300)
        most = max(STRAY, 1 / size.size, min(MOST_ROUNDED, allowed))
        return bool(is_far.mean() <= STRAY and is_off.mean() <= most)

    @cached_property
    def known(self) -> tuple[Known, ...]:
        """Returns what the region reads, each once, then what else both sides have."""
        found: list[Known] = []
        for piece in self.region.left_inputs:
            if piece.value is not None:
                found.append(Known(piece.result.name, piece.result.kind, piece.value, is_left=True))
        for piece in self.region.right_inputs:
            if piece.value is None:
                continue
            same = next((at for at, one in enumerate(found) if is_close(one.value, piece.value)), None)
            if same is None:
                found.append(Known(piece.result.name, piece.result.kind, piece.value, is_right=True))
            else:
                found[same] = replace(found[same], is_right=True)
        names = {one.name for one in found}
        near = [Known(name, "op", value) for name, value in self.region.agreed.items() if name not in names]
        near = [one for one in near if self.is_weight or one.value.size > 1][:NEAREST]
        return (*found, *near, *(self._inner() if self.with_inner else ()))

    def _inner(self) -> Iterator[Known]:
        for side, is_left in zip(self.sides, (True, False), strict=True):
            for name, value in side.inner[-NEAREST:]:
                yield Known(name, "op", value, is_left, not is_left, is_inner=True)

    def shaped(self, shape: tuple[int, ...]) -> Iterator[tuple[Known, Array]]:
        """Yields the known values that have a shape, or have it with heads split off the last axis or two swapped."""
        for one in self.known:
            for view in views(one.value, shape):
                yield one, view

    def vectors(self) -> list[tuple[str, Floats]]:
        """Returns the known vectors along the last axis, by name."""
        return [(one.name, floats(one.value)) for one in self.known if one.value.shape == self.shape[-1:]]

    @cached_property
    def dimensions(self) -> tuple[int, ...]:
        """Returns the sizes of axes in the region, those of the pair first."""
        values = [self.region.left, *(one.value for one in self.known), *(value for _, value in self.inner)]
        return tuple(dict.fromkeys(size for value in values for size in value.shape[::-1] if size > 1))


def views(value: Array, shape: tuple[int, ...]) -> Iterator[Array]:
    """Yields a value as it is, with heads split off the last axis, or with axes swapped, if it then has the shape."""
    if value.shape == shape:
        yield value
    elif value.size != int(np.prod(shape, dtype=np.int64)) or value.dtype == np.bool_:
        return
    elif len(shape) == 4 and value.ndim == 4 and value.swapaxes(1, 2).shape == shape:
        yield value.swapaxes(1, 2)
    elif len(shape) == 4 and value.ndim == 3 and value.shape[:2] == (shape[0], shape[2]):
        yield value.reshape(shape[0], shape[2], shape[1], shape[3]).swapaxes(1, 2)
    elif (value.ndim and shape and value.shape[-1] == shape[-1]) or len(shape) == value.ndim + 1:
        yield value.reshape(shape)


def floats(value: Array) -> Floats:
    """Returns a value in float64; of a complex one the parts, in a last axis."""
    if np.iscomplexobj(value):
        value = np.stack([value.real, value.imag], axis=-1)
    return np.asarray(value, dtype=np.float64)


def norm(values: Floats) -> float:
    """Returns the 2-norm of all elements."""
    flat = values.reshape(-1)
    return float(np.sqrt(flat @ flat))


def head_rows(value: Array) -> Floats:
    """Returns the first rows in float64, without a copy of the others."""
    if value.flags.c_contiguous or value.ndim == 2:
        return floats(value.reshape(-1, value.shape[-1])[:ROWS])
    places = np.unravel_index(np.arange(min(ROWS, value.size // value.shape[-1])), value.shape[:-1])
    return floats(value[places])


def at(view: Array, places: npt.NDArray[np.intp]) -> Floats:
    """Returns elements of a view at flat positions, without a copy of the others."""
    if view.flags.c_contiguous:
        return np.asarray(view.reshape(-1)[places], dtype=np.float64)
    return np.asarray(view[np.unravel_index(places, view.shape)], dtype=np.float64)


def is_close(first: Array, second: Array, tolerance: float = 2e-2) -> bool:
    """Returns whether two values have one shape and, at a few places, elements that are about equal."""
    if first.shape != second.shape:
        return False
    if first is second or not first.size:
        return True
    places = np.unique(np.linspace(0, first.size - 1, 257).astype(np.intp))
    left, right = at(first, places), at(second, places)
    if not np.array_equal(np.isfinite(left), np.isfinite(right)):
        return False
    left, right = _comparable(left, right)
    return norm(right - left) <= tolerance * max(norm(left), 1e-300)


def divisors(number: int) -> list[int]:
    """Returns the divisors of a number from 1 up."""
    small = [one for one in range(1, int(number**0.5) + 1) if number % one == 0]
    return small + [number // one for one in reversed(small) if one * one != number]


def shifts(most: int) -> Iterator[int]:
    """Yields steps forth and back, the shortest first."""
    return (sign * step for step in range(1, most + 1) for sign in (1, -1))


def number_text(number: float) -> str:
    """Returns a number as a reader writes it: 10,000 or 0.125 or 1e-05."""
    return f"{number:,.0f}" if abs(number) >= 1000 and number == round(number) else f"{number:.6g}"


def _comparable(left: Floats, right: Floats) -> tuple[Floats, Floats]:
    """Returns both with 0 where both are not finite in the same way, or both masked."""
    if left.shape != right.shape:
        return left, right
    is_same = (np.isnan(left) & np.isnan(right)) | (np.isinf(left) & (left == right))
    is_same |= _masked(left) & _masked(right)
    if not is_same.any():
        return left, right
    return np.where(is_same, 0.0, left), np.where(is_same, 0.0, right)


def _masked(values: Floats) -> npt.NDArray[np.bool_]:
    """Returns which elements are masked: far below all others, that are no large numbers, and about as large."""
    with np.errstate(invalid="ignore"):
        is_low = values <= MASKED
    if is_low.any():
        rest, low = np.abs(values[~is_low & np.isfinite(values)]), values[is_low & np.isfinite(values)]
        is_wide = len(low) and low.min() < MASKS * low.max()
        if is_wide or not len(rest) or float(np.median(rest)) > -MASKED / 10:
            return np.zeros(values.shape, dtype=bool)
    return np.asarray(is_low)
