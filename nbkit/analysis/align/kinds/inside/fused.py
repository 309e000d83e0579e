"""Finds how a fused attention makes its result of queries, keys and values that both sides know, by doing so."""

from collections.abc import Iterator
from itertools import permutations

import numpy as np
import numpy.typing as npt

from nbkit.analysis.align.kinds.case import MASKED, Case, CaseSide, Floats, floats, norm
from nbkit.analysis.align.kinds.inside.attention import (
    NEAR,
    QUERIES,
    Attention,
    Bools,
    Named,
    heads_of,
    pool_of,
    results_of,
)
from nbkit.analysis.align.region import Array

# Known values that are tried as queries, keys and values.
TRIED = 6


def fused(case: Case, side: CaseSide) -> Iterator[tuple[Attention, Floats, Floats]]:
    """Yields what one side computes if its result is attention of known values, scaled as usual, and both results."""
    if len(side.ops) > 1 or len(case.shape) < 3:
        return
    pool = [(name, value) for name, value in pool_of(case) if np.issubdtype(value.dtype, np.floating)]
    for heads, queries, keys in _sizes(case, pool):
        named = [one for one in heads_of(pool, heads, keys) if one.value.shape[1] == heads][:TRIED]
        asking = named if queries == keys else list(heads_of(pool, heads, queries))[:TRIED]
        for query in asking:
            for key, values in permutations([one for one in named if one is not query], 2):
                if key.value.shape[-1] == query.value.shape[-1]:
                    yield from _proved(case, (query, key, values), side, [*asking, *named])


def _sizes(case: Case, pool: list[tuple[str, Array]]) -> list[tuple[int, int, int]]:
    """Returns numbers of heads, queries and keys that the result may have."""
    found = []
    for _, value in pool:
        for _, beside in pool:
            if value.ndim == 4 and beside.ndim == 4 and value.size == case.left.size:
                for first, second in ((1, 2), (2, 1)):
                    found.append((value.shape[first], value.shape[second], beside.shape[second]))
    return list(dict.fromkeys(found))


def _proved(
    case: Case, parts: tuple[Named, Named, Named], side: CaseSide, pool: list[Named]
) -> Iterator[tuple[Attention, Floats, Floats]]:
    query, key, values = parts
    heads, queries, width = query.value.shape[1:]
    rows = np.unique(np.linspace(0, queries - 1, min(queries, QUERIES)).astype(np.intp))
    factor = width**-0.5
    scores = factor * (query.value[:, :, rows] @ key.value.swapaxes(-1, -2))
    for mine, beside in results_of(side, (case.shape[0], heads, queries, values.value.shape[-1]), rows):
        for masked in _masks(case, scores, queries, rows):
            attention = Attention(rows, masked, scores, values, query, key, factor, pool)
            rest = attention.result(scores, masked) - mine
            if norm(rest) <= max(NEAR, 2 * case.eps) * norm(mine):
                yield attention, mine, beside
                return


def _masks(case: Case, scores: Floats, queries: int, rows: npt.NDArray[np.intp]) -> Iterator[Bools]:
    """Yields no mask, a causal one, and those that are known."""
    keys = scores.shape[-1]
    yield np.zeros(scores.shape, dtype=bool)
    yield np.broadcast_to(np.arange(keys) > rows[:, None] + keys - queries, scores.shape)
    for one in case.known:
        if one.value.ndim < 2 or one.value.shape[-2:] != (queries, keys) or one.is_inner:
            continue
        mask = one.value.reshape(-1, *one.value.shape[-2:])[:1, rows]
        low = floats(mask) == 0 if mask.dtype == np.bool_ else floats(mask) <= MASKED
        if low.any():
            yield np.broadcast_to(low, scores.shape)
