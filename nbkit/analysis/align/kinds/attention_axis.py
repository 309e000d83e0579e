"""Tests whether fused attention attends over positions on one side, and over heads on the other."""

from nbkit.analysis.align.kinds.case import Case, floats, is_close
from nbkit.analysis.align.kinds.registry import Kinds, kind_test
from nbkit.analysis.align.region import Kind, Piece
from nbkit.ops.families import FUSED_ATTENTION

NAME = "attention_axis"
# Queries, keys and values.
READ = 3


@kind_test(NAME, 116, lambda case: case.is_finite and not case.is_weight)
def attention_axis(case: Case) -> Kinds:
    """Tests whether queries, keys and values are the same, but for the swap of positions and heads on one side."""
    ends = case.region.left_ops[-1:], case.region.right_ops[-1:]
    left, right = (_large(side.inputs) for side in case.sides)
    if (
        not all(ops and FUSED_ATTENTION in (ops[0].result.op or "") for ops in ends)
        or not len(left) == len(right) == READ
    ):
        return
    values = [[floats(piece.value) for piece in pieces if piece.value is not None] for pieces in (left, right)]
    pairs = [*zip(*values, strict=True)]
    is_swapped = all(one.ndim == 4 and is_close(one.swapaxes(-3, -2), other) for one, other in pairs)
    if is_swapped and left[0].result.shape[-3] != left[0].result.shape[-2]:
        ours, theirs = (pieces[0].result.shape[-2] for pieces in (left, right))
        message = (
            f"The left one attends over the axis of {ours}, the right one over that of {theirs}: positions and heads "
            "of queries, keys and values are swapped on one side."
        )
        yield Kind(NAME, message, 0.0)


def _large(pieces: tuple[Piece, ...]) -> list[Piece]:
    """Returns what is read and has several axes."""
    return [piece for piece in pieces if piece.value is not None and piece.value.ndim == 4]
