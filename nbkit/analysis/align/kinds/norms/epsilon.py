"""Tests whether a norm adds another epsilon on each side, told by the values of the two epsilons applied."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nbkit.analysis.align.kinds.case import MOST_LEFT, Case, Floats, at, floats, norm, number_text
from nbkit.analysis.align.region import Kind

EPSILONS = (0.0, 1e-12, 1e-8, 1.1920928955078125e-07, 1e-7, 1e-6, 1e-5, 2e-5, 1e-4, 1e-3, 1e-2)
NAME = "epsilon"
Indices = npt.NDArray[np.intp]
# Elements of the rows that are looked at.
SAMPLED = 100_000


@dataclass(frozen=True)
class Statistic:
    """Holds what a norm divides the rows of its input by, squared and before an epsilon; `centered` is that input."""

    values: Floats  # one of each row
    centered: Floats  # rows

    def factors(self, first: float, second: float) -> Floats:
        """Returns by what each row changes when the first epsilon becomes the second."""
        return np.sqrt((self.values + first) / np.maximum(self.values + second, 1e-300))


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


def epsilon(case: Case) -> Kind | None:
    """Tests constants, statistics to which an epsilon is added, and results of norms row by row."""
    if not case.is_same_shape or not case.is_finite or case.distance == 0:
        return None
    if case.left.size == 1:
        return _constant(case)
    if case.is_weight:
        return None
    return _added(case) or (_normed(case) if case.is_clear else None)


def _message(left: float, right: float) -> str:
    return f"The norm has epsilon {number_text(left)} on the left, {number_text(right)} on the right."


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


def _added(case: Case) -> Kind | None:
    """Tests v + e, sqrt(v + e) and 1 / sqrt(v + e) with v known, or a mean of squares or variance of what is known."""
    left, right = (side.reshape(-1)[case.places] for side in (case.left, case.right))
    distance = norm(right - left)
    for known in _statistics_beside(case):
        for forth, back in POWERS:
            first, second = _usual(back(left) - known), _usual(back(right) - known)
            if first is None or second is None or first == second:
                continue
            explained = norm(right - forth(known + second)) / distance
            if max(explained, norm(left - forth(known + first)) / distance) <= max(case.limit, MOST_LEFT / 2):
                return Kind(NAME, _message(first, second), explained)
    return None


POWERS: tuple[tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]], ...] = (
    (lambda x: x, lambda x: x),
    (np.sqrt, lambda x: x**2),
    (lambda x: x**-0.5, lambda x: x**-2.0),
)


def _usual(values: Floats) -> float | None:
    """Returns the usual epsilon that lies nearest to the middle of values that should all be it."""
    middle = float(np.median(values))
    near = min(EPSILONS[1:], key=lambda one: abs(one - middle))
    return near if abs(near - middle) <= 0.2 * near else None


def _statistics_beside(case: Case) -> Iterator[Floats]:
    """Yields at the few places what an epsilon may be added to."""
    inner = (*case.inner(case.region.left_ops), *case.inner(case.region.right_ops))
    values = [*(one.value for one in case.known), *(value for _, value in inner)]
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


def _normed(case: Case) -> Kind | None:
    width = case.shape[-1] if case.shape else 0
    if width < 2 or case.left.size // width < 2 or case.distance > 0.9 * case.size:
        return None
    count = case.left.size // width
    chosen = np.unique(np.linspace(0, count - 1, max(min(count, SAMPLED // width), 8)).astype(np.intp))
    sides = [side.reshape(-1, width)[chosen] for side in (case.left, case.right)]
    for bias in _biases(case, width):
        rows = Rows(sides[0] - bias, sides[1] - bias)
        # Rows must differ by a factor each, before any epsilon is tried.
        if norm(rows.right - rows.ratios[:, None] * rows.left) > MOST_LEFT * rows.distance:
            continue
        for statistic in _statistics(case, width, chosen):
            if (kind := _solved(case, statistic, rows)) is not None:
                return kind
    return None


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


def _solved(case: Case, statistic: Statistic, rows: Rows) -> Kind | None:
    """Tests one norm: each row of the right one is the left one's times sqrt((v + e1) / (v + e2)), e1 and e2 usual."""
    fits = []
    for first in EPSILONS:
        for second in EPSILONS:
            if first != second:
                expected = statistic.factors(first, second)
                fits.append((rows.misfit(expected), first, second))
    least = min(fits)[0]
    if not least <= case.limit:
        return None
    near = [fit for fit in fits if fit[0] <= max(2 * least, 0.5 * case.limit, 0.02)]
    _, first, second = min(near, key=lambda fit: _misfit(statistic, rows, fit[1]) + 1e-3 * fit[0])
    factors = statistic.factors(first, second)
    explained = norm(rows.right - factors[:, None] * rows.left) / rows.distance
    return Kind(NAME, _message(first, second), explained) if explained <= max(case.limit, MOST_LEFT) else None


def _misfit(statistic: Statistic, rows: Rows, first: float) -> float:
    """Returns how far the left one is from w x / sqrt(v + e1), with the weight w that fits best."""
    unit = statistic.centered / np.sqrt(np.maximum(statistic.values + first, 1e-300))[:, None]
    weights = (unit * rows.left).sum(0) / np.maximum((unit**2).sum(0), 1e-300)
    return norm(rows.left - unit * weights) / rows.distance
