"""Tests whether a norm adds another epsilon on each side, told by the values of the two epsilons applied."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from nbkit.analysis.align.kinds.case import MOST_LEFT, Case, Floats, at, floats, norm, number_text
from nbkit.analysis.align.kinds.norms.recorded import Epsilon, recorded_epsilon
from nbkit.analysis.align.kinds.registry import Kinds, kind_test
from nbkit.analysis.align.region import Kind

EPSILONS = (0.0, 1e-12, 1e-8, 1.1920928955078125e-07, 1e-7, 1e-6, 1e-5, 2e-5, 1e-4, 1e-3, 1e-2)
NAME = "epsilon"
ANOTHER = "The norm has another epsilon on the right."
Indices = npt.NDArray[np.intp]
Told = tuple[Epsilon | None, Epsilon | None]
# Estimates that fit so many times as badly as the best one, at most, may be right as well.
AS_GOOD = 2.0
# Elements of the rows that are looked at.
SAMPLED = 100_000


@dataclass(frozen=True)
class Statistic:
    """Holds what a norm divides the rows of its input by, squared and before an epsilon; `centered` is that input."""

    values: Floats  # one of each row
    centered: Floats  # rows

    def factors(self, first: Epsilon, second: Epsilon) -> Floats:
        """Returns by what each row changes when the first epsilon becomes the second."""
        return first.divisor(self.values) / second.divisor(self.values)


class Rows:
    """Holds rows of both sides, and the factor by which each differs."""

    def __init__(self, left: Floats, right: Floats) -> None:
        self.left, self.right = left, right
        self.distance = max(norm(right - left), 1e-300)
        self.squares = np.einsum("ij,ij->i", left, left)
        self.ratios = np.einsum("ij,ij->i", left, right) / np.maximum(self.squares, 1e-300)

    def misfit(self, factors: Floats) -> float:
        """Returns what other factors leave of the difference, as far as factors go."""
        return float(np.sqrt(self.squares @ (factors - self.ratios) ** 2)) / self.distance


@kind_test(NAME, 50, lambda case: case.is_same_shape and case.is_finite and case.distance != 0)
def epsilon(case: Case) -> Kinds:
    """Tests constants, statistics to which an epsilon is added, and results of norms row by row.

    What the arguments of the ops tell is taken, and only the rest is estimated.
    """
    if case.left.size == 1:
        yield _constant(case)
        return
    left, right = map(recorded_epsilon, case.sides)
    if not case.is_weight and (left is None or left != right):
        yield _added(case, (left, right))
        yield _normed(case, (left, right)) if case.is_clear else None


def _message(left: float, right: float) -> str:
    return f"The norm has epsilon {number_text(left)} on the left, {number_text(right)} on the right."


def _told_message(left: Epsilon, right: Epsilon) -> str:
    if left.is_outside == right.is_outside:
        return _message(left.value, right.value)
    texts = [
        f"{number_text(one.value)} {'to the root' if one.is_outside else 'before it takes the root'}"
        for one in (left, right)
    ]
    return f"The norm adds epsilon {texts[0]} on the left, {texts[1]} on the right."


def _constant(case: Case) -> Kind | None:
    left, right = float(case.left.reshape(-1)[0]), float(case.right.reshape(-1)[0])
    if case.region.kind not in ("constant", "buffer") or left == right:
        return None
    near = [_snapped(one) for one in (left, right)]
    if None in near or near[0] == near[1]:
        return None
    return Kind(NAME, _message(left, right), 0.0)


def _snapped(value: float) -> float | None:
    """Returns the usual epsilon that a value is; null if it is none."""
    return next((one for one in EPSILONS[1:] if abs(value - one) <= 5e-3 * one), None)


def _added(case: Case, told: Told) -> Kind | None:
    """Tests v + e, sqrt(v + e) and 1 / sqrt(v + e) with v known, or a mean of squares or variance of what is known."""
    left, right = (side.reshape(-1)[case.places] for side in (case.left, case.right))
    if any(one is not None and one.is_outside for one in told):
        return _outside(case, told, left, right)
    for known in _statistics_beside(case):
        noise = case.eps * float(np.median(np.abs(known)))
        if known.min() < -noise:  # no mean of squares, and no variance
            continue
        for forth, back in POWERS:
            first, second = (
                _usual(back(side) - known, noise) if one is None else one.value
                for side, one in zip((left, right), told, strict=True)
            )
            if first is None or second is None or first == second:
                continue
            explained = case.rest(forth(known + second), right, left)
            if max(explained, case.rest(forth(known + first), left, right)) <= max(case.limit, MOST_LEFT / 2):
                sure = [one is not None or value > 0 for one, value in zip(told, (first, second), strict=True)]
                return Kind(NAME, _message_of(first, second, sure), explained)
    return None


def _outside(case: Case, told: Told, left: Floats, right: Floats) -> Kind | None:
    """Tests v + e against sqrt(v), to which the other side adds its epsilon then."""
    if told[0] is None or told[1] is None or told[0].is_outside == told[1].is_outside:
        return None
    inside, root, epsilon = (right, left, told[1]) if told[0].is_outside else (left, right, told[0])
    expected = np.sqrt(np.maximum(inside - epsilon.value, 0.0))
    explained = norm(root - expected) / norm(right - left)
    return Kind(NAME, _told_message(told[0], told[1]), explained) if explained <= case.limit else None


POWERS: tuple[tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]], ...] = (
    (lambda x: x, lambda x: x),
    (np.sqrt, lambda x: x**2),
    (lambda x: x**-0.5, lambda x: x**-2.0),
)


def _usual(values: Floats, noise: float) -> float | None:
    """Returns the usual epsilon that lies nearest to the middle of values that should all be it.

    It is 0 where the middle is no more than noise: any smaller one may be meant then.
    """
    middle = float(np.median(values))
    near = min(EPSILONS[1:], key=lambda one: abs(one - middle))
    if abs(middle) <= noise:
        return 0.0
    return near if abs(near - middle) <= 0.2 * near else None


def _statistics_beside(case: Case) -> Iterator[Floats]:
    """Yields at the few places what an epsilon may be added to."""
    values = [*(one.value for one in case.known), *(value for _, value in case.inner)]
    for value in values:
        if value.shape == case.shape and value.dtype != np.bool_:
            yield at(value, case.places)
    if case.shape[-1] != 1:
        return
    for value in values:
        if value.ndim >= 1 and value.shape[-1] > 1 and (*value.shape[:-1], 1) == case.shape:
            rows = floats(value.reshape(-1, value.shape[-1])[case.places])
            yield (rows**2).mean(-1)
            yield rows.var(-1)


def _normed(case: Case, told: Told) -> Kind | None:
    width = case.shape[-1] if case.shape else 0
    if width < 2 or case.left.size // width < 2 or case.distance > 0.9 * case.size:
        return None
    count = case.left.size // width
    chosen = np.unique(np.linspace(0, count - 1, max(min(count, SAMPLED // width), 8)).astype(np.intp))
    sides = [side.reshape(-1, width)[chosen] for side in (case.left, case.right)]
    found = []
    for bias in _biases(case, width):
        rows = Rows(sides[0] - bias, sides[1] - bias)
        # Rows must differ by a factor each, before any epsilon is tried.
        if case.rest(rows.ratios[:, None] * rows.left, rows.right, rows.left) > MOST_LEFT:
            continue
        solved = (_solved(case, statistic, rows, told) for statistic in _statistics(case, width, chosen))
        found += [one for one in solved if one is not None]
    return min(found, key=lambda one: one[0])[1] if found else None


def _statistics(case: Case, width: int, chosen: Indices) -> Iterator[Statistic]:
    for _, view in case.shaped(case.shape):
        if view.dtype == np.bool_:
            continue
        rows = floats(view.reshape(-1, width)[chosen])
        yield Statistic((rows**2).mean(-1), rows)
        centered = rows - rows.mean(-1, keepdims=True)
        yield Statistic((centered**2).mean(-1), centered)


def _biases(case: Case, width: int) -> Iterator[Floats]:
    yield np.zeros(width)
    for one in case.known:
        if one.kind == "parameter" and one.value.shape == (width,):
            yield floats(one.value)


def _solved(case: Case, statistic: Statistic, rows: Rows, told: Told) -> tuple[float, Kind] | None:
    """Tests one norm: each row of the right one is the left one's times sqrt((v + e1) / (v + e2)).

    Returns how far the left one is from such a norm, and the kind. What is not told of e1 and e2 is taken from the
    usual ones. Several may fit: then none is named.
    """
    fits = []
    for first, second in product(*((Epsilon(e) for e in EPSILONS) if one is None else (one,) for one in told)):
        if first != second:
            fits.append((rows.misfit(statistic.factors(first, second)), first, second))
    least = min((fit[0] for fit in fits), default=np.inf)
    if not least <= case.limit:
        return None
    near = [fit for fit in fits if fit[0] <= max(2 * least, 0.5 * case.limit, 0.02)]
    misfits = [_misfit(statistic, rows, fit[1]) + 1e-3 * fit[0] for fit in near]
    best = int(np.argmin(misfits))
    good = [fit[1:] for fit, misfit in zip(near, misfits, strict=True) if misfit <= AS_GOOD * misfits[best]]
    _, first, second = near[best]
    explained = norm(rows.right - statistic.factors(first, second)[:, None] * rows.left) / rows.distance
    if explained > max(case.limit, MOST_LEFT):
        return None
    return misfits[best], Kind(NAME, _estimated(good), explained)


def _estimated(good: list[tuple[Epsilon, Epsilon]]) -> str:
    """Returns the message for what fits: a number only where nothing else fits as well."""
    first, second = good[0]
    if len(good) == 1:
        return _told_message(first, second)
    sure = [len({pair[which] for pair in good}) == 1 for which in (0, 1)]
    if len({pair[1].value < pair[0].value for pair in good}) > 1 or not any(sure):
        return ANOTHER
    return _message_of(first.value, second.value, sure)


def _message_of(first: float, second: float, sure: list[bool]) -> str:
    """Returns the message for two epsilons, of which one that is not sure is only said to be the smaller or larger."""
    if all(sure):
        return _message(first, second)
    if not any(sure):
        return ANOTHER
    (known, side), (other, beside) = ((first, "left"), (second, "right"))[:: 1 if sure[0] else -1]
    size = "smaller" if other < known else "larger"
    return f"The norm has epsilon {number_text(known)} on the {side}, a {size} one on the {beside}."


def _misfit(statistic: Statistic, rows: Rows, first: Epsilon) -> float:
    """Returns how far the left one is from w x / sqrt(v + e1), with the weight w that fits best."""
    unit = statistic.centered / first.divisor(statistic.values)[:, None]
    weights = (unit * rows.left).sum(0) / np.maximum((unit**2).sum(0), 1e-300)
    return norm(rows.left - unit * weights) / rows.distance
