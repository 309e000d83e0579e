"""Tells what a side of a region adds to make the pair's result."""

from nbkit.analysis.align.kinds.case import Case, is_close
from nbkit.analysis.align.region import Array, Piece
from nbkit.graphs.canonical_ops import PASSING, op_kind

SUMS = ("add", "subtract")
# Ops that add something to something, whatever else they do, have this in their names.
ADDING = ("add", "sub", "sum", "skip", "fused", "linear", "gemm", "conv", "lerp", "mean", "cat", "einsum", "matmul")
# Two values that are the same on both sides.
SAME = 1e-5


def adds(case: Case, side: str, value: Array) -> bool:
    """Returns whether a value is among those that a side adds up to its result."""
    return any(
        one.size == value.size and is_close(one.reshape(-1), value.reshape(-1), SAME) for one in _addends(case, side)
    )


def may_add(case: Case, side: str) -> bool:
    """Returns whether an op of a side may add something; true where no op is known."""
    ops = [piece.result.op for piece in _pieces(case, side)[0] if piece.result.kind == "op"]
    return not ops or None in ops or any(word in op.lower() for op in ops if op is not None for word in ADDING)


def _pieces(case: Case, side: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    region = case.region
    return (region.left_ops, region.left_inputs) if side == "left" else (region.right_ops, region.right_inputs)


def _addends(case: Case, side: str) -> list[Array]:
    """Returns what a sum that ends a side consists of; other results are none."""
    ops, inputs = _pieces(case, side)
    made = {piece.result.result_id: piece for piece in (*inputs, *ops)}
    inside = {piece.result.result_id for piece in ops}
    found, waiting, seen = [], list(ops[-1:]), set[int]()
    while waiting:
        piece = waiting.pop()
        does, number = op_kind(piece.result.op), piece.result.result_id
        if number in seen:
            continue
        seen.add(number)
        sources = [made[source] for source in piece.result.sources if source in made]
        if sources and number in inside and (does in SUMS or does in PASSING):
            waiting += sources
        elif piece.value is not None and piece is not ops[-1]:
            found.append(piece.value)
    return found
