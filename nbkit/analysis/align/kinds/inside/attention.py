"""Attention says how one side computes it, told by the values that it makes inside: queries, keys, scores, mask.

Only the first element of the batch and some of the queries are kept.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import permutations

import numpy as np
import numpy.typing as npt

from nbkit.analysis.align.kinds.case import MASKED, NEAREST, Case, CaseSide, Floats, floats, norm, views
from nbkit.analysis.align.region import Array

Bools = npt.NDArray[np.bool_]
QUERIES = 32
NEAR = 1e-3


@dataclass(frozen=True)
class Named:
    """Holds a value [1, head, position, element] and its name."""

    name: str
    value: Floats


@dataclass(frozen=True)
class Attention:
    """Holds what probabilities of some queries are made of; `values` is null where they are the pair's own."""

    rows: npt.NDArray[np.intp]  # which queries
    masked: Bools
    scores: Floats  # those that are masked have any value
    values: Named | None
    query: Named | None
    key: Named | None
    factor: float
    pool: list[Named] = field(default_factory=list)

    def result(self, scores: Floats, masked: Bools, values: Floats | None = None) -> Floats:
        """Returns what comes out of other scores, another mask, or other values; NaN for rows wholly masked."""
        low = np.where(masked, -np.inf, scores)
        low = np.exp(low - low.max(-1, keepdims=True))
        found = low / low.sum(-1, keepdims=True)
        if self.values is None:
            return np.asarray(found)
        return np.asarray(found @ (self.values.value if values is None else values))

    def product(self, query: Floats, key: Floats) -> Floats:
        """Returns scores of queries and keys."""
        return np.asarray(self.factor * (query[:, :, self.rows] @ key.swapaxes(-1, -2)))


def attentions(case: Case, side: CaseSide) -> Iterator[tuple[Attention, Floats, Floats]]:
    """Yields the attention that a side computes with what both sides then have: its own result, and the other's."""
    inner = [(name, value) for name, value in side.inner if np.issubdtype(value.dtype, np.floating)][-NEAREST:]
    pool = [*pool_of(case), *inner]
    for name, value in [*inner, ("", side.values)]:
        if value.ndim != 4 or not _is_probability(value):
            continue
        rows = np.unique(np.linspace(0, value.shape[2] - 1, min(value.shape[2], QUERIES)).astype(np.intp))
        probabilities = floats(value[:1, :, rows])
        for values, mine, beside in _values(name, probabilities, rows, value.shape, pool, side):
            found = _found(probabilities, rows, value.shape, values, pool)
            if norm(found.result(found.scores, found.masked) - mine) <= max(NEAR, 2 * case.eps) * norm(mine):
                yield found, mine, beside


def pool_of(case: Case) -> list[tuple[str, Array]]:
    """Returns what both sides know that may be queries, keys, values or scores, by name."""
    return [(one.name, one.value) for one in case.known if one.value.ndim in (3, 4) and not one.is_inner]


def _is_probability(value: Array) -> bool:
    rows = floats(value.reshape(-1, value.shape[-1])[:256])
    return value.shape[-1] > 1 and bool((rows >= 0).all() and (np.abs(rows.sum(-1) - 1) < 2e-2).all())


def _values(
    name: str,
    probabilities: Floats,
    rows: npt.NDArray[np.intp],
    shape: tuple[int, ...],
    pool: list[tuple[str, Array]],
    side: CaseSide,
) -> Iterator[tuple[Named | None, Floats, Floats]]:
    """Yields values by which probabilities become a side's result, and both sides' results of the kept queries."""
    if not name:
        yield None, side.values[:1, :, rows], side.beside[:1, :, rows]
        return
    for one in heads_of(pool, shape[1], shape[3]):
        for mine, beside in results_of(side, (shape[0], shape[1], shape[2], one.value.shape[-1]), rows):
            if norm(probabilities @ one.value - mine) <= 2e-2 * norm(mine):
                yield one, mine, beside


def results_of(side: CaseSide, shape: tuple[int, ...], rows: npt.NDArray[np.intp]) -> Iterator[tuple[Floats, Floats]]:
    """Yields a side's result and the other side's with heads in an axis of their own, of the kept queries."""
    for own, other in zip(views(side.values, shape), views(side.beside, shape), strict=False):
        yield floats(own[:1, :, rows]), floats(other[:1, :, rows])


def heads_of(pool: list[tuple[str, Array]], heads: int, length: int) -> Iterator[Named]:
    """Yields known values as [1, head, position, element], with fewer heads repeated as often as it takes."""
    for name, value in pool:
        if value.ndim == 4 and value.shape[2] == length:
            found = value[:1]
        elif value.ndim == 4 and value.shape[1] == length:
            found = value[:1].swapaxes(1, 2)
        elif value.ndim == 3 and value.shape[1] == length and value.shape[2] % heads == 0:
            found = value[:1].reshape(1, length, heads, -1).swapaxes(1, 2)
        else:
            continue
        if heads % found.shape[1] == 0:
            yield Named(name, floats(np.repeat(found, heads // found.shape[1], axis=1)))


def _found(
    probabilities: Floats,
    rows: npt.NDArray[np.intp],
    shape: tuple[int, ...],
    values: Named | None,
    pool: list[tuple[str, Array]],
) -> Attention:
    """Returns an attention with scores as they are before the mask, where these, or queries and keys, are known."""
    masked = probabilities == 0
    scores = np.log(np.maximum(probabilities, 1e-300))
    for _, value in pool:
        if value.shape == shape:
            before = floats(value[:1, :, rows])
            is_low = before <= MASKED
            if _is_same(before, scores, ~masked) and not (is_low & masked).any():
                scores = before
                break
    heads = list(heads_of(pool, shape[1], shape[3])) + (
        list(heads_of(pool, shape[1], shape[2])) if shape[2] != shape[3] else []
    )
    for query, key in permutations(heads, 2):
        if query.value.shape[2] != shape[2] or key.value.shape[2:] != (shape[3], query.value.shape[3]):
            continue
        product = query.value[:, :, rows] @ key.value.swapaxes(-1, -2)
        factor = _factor(product, scores, ~masked)
        if factor is not None:
            return Attention(rows, masked, factor * product, values, query, key, factor, heads)
    return Attention(rows, masked, scores, values, None, None, 1.0, heads)


def _centered(values: Floats, seen: Bools) -> Floats:
    """Returns rows less their mean over what is seen: a softmax does not tell more."""
    mean = np.where(seen, values, 0.0).sum(-1, keepdims=True) / np.maximum(seen.sum(-1, keepdims=True), 1)
    return np.where(seen, values - mean, 0.0)


def _is_same(first: Floats, second: Floats, seen: Bools) -> bool:
    left, right = _centered(first, seen), _centered(second, seen)
    return norm(left - right) <= 2e-2 * norm(right)


def _factor(product: Floats, scores: Floats, seen: Bools) -> float | None:
    """Returns by what a product is to be multiplied to give the scores; null if it does not."""
    left, right = _centered(product, seen), _centered(scores, seen)
    factor = float(np.vdot(left, right)) / max(float(np.vdot(left, left)), 1e-300)
    return factor if norm(factor * left - right) <= 2e-2 * norm(right) and norm(right) > 0 else None
