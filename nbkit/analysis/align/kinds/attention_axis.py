"""Tests whether fused attention attends over positions on one side, and over heads on the other."""

from collections.abc import Sequence
from itertools import product

import numpy as np

from nbkit.analysis.align.kinds.case import Case, Floats, floats, is_close
from nbkit.analysis.align.kinds.registry import Kinds, kind_test
from nbkit.analysis.align.region import Piece
from nbkit.ops.families import FUSED_ATTENTION

NAME = "attention_axis"
# Queries, keys and values; scores of more are not computed again.
READ, MOST_SCORES = 3, 20_000_000


@kind_test(NAME, 116, lambda case: case.is_comparable and not case.is_weight)
def attention_axis(case: Case) -> Kinds:
    """Tests whether queries, keys and values are the same, but for the swap of positions and heads on one side."""
    ends = case.region.left_ops[-1:], case.region.right_ops[-1:]
    left, right = (_large(side.inputs) for side in case.sides)
    if not all(ops and FUSED_ATTENTION in (ops[0].result.op or "") for ops in ends) or not _are_swapped(left, right):
        return
    ours, theirs = left[0].shape[-2], right[0].shape[-2]
    message = (
        f"The left one attends over the axis of {ours}, the right one over that of {theirs}: positions and heads "
        "of queries, keys and values are swapped on one side."
    )
    for factor, is_causal in product((left[0].shape[-1] ** -0.5, 1.0), (False, True)):
        if is_close(_attended(left, factor, is_causal=is_causal), case.left):
            found = _attended(right, factor, is_causal=is_causal)
            yield case.told(NAME, message, found)
            yield case.told(NAME, message, found.swapaxes(-3, -2))


def _large(pieces: Sequence[Piece]) -> list[Floats]:
    """Returns what is read and has batch, heads, positions and elements."""
    return [floats(piece.value) for piece in pieces if piece.value is not None and piece.value.ndim == 4]


def _are_swapped(left: Sequence[Floats], right: Sequence[Floats]) -> bool:
    if not len(left) == len(right) == READ or left[0].shape[-3] == left[0].shape[-2]:
        return False
    is_swapped = all(is_close(one.swapaxes(-3, -2), other) for one, other in zip(left, right, strict=True))
    return is_swapped and max(one[..., 0].size * one.shape[-2] for one in (left[0], right[0])) <= MOST_SCORES


def _attended(read: Sequence[Floats], factor: float, *, is_causal: bool) -> Floats:
    query, key, value = read
    scores = factor * (query @ key.swapaxes(-1, -2))
    if is_causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], dtype=bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(weights / weights.sum(-1, keepdims=True) @ value)
