"""Follows one dimension of a tensor through ops that only give it another form."""

from collections.abc import Sequence
from math import prod

from nbkit.findings.dataflow.flow import Op
from nbkit.ops.families import RESHAPES, family

SAME_DIMS = family("IDENTITIES EXPANDS MULTIPLIES native_dropout")
# Complex numbers of pairs of real ones, and back: the last dimension comes or goes.
PAIRS = ("view_as_complex", "view_as_real")
VIEWS = RESHAPES - family("squeeze unsqueeze")


def dim_after(op: Op, place: int, dim: int) -> int | None:
    """Returns which dimension of the result of `op` is dimension `dim` of its input at `place`; null if none is."""
    if not op.outputs or place < 0:
        return None
    before, after = op.inputs[place].shape, op.outputs[0].shape
    if -1 in (*before, *after):
        return None
    if (op.name in SAME_DIMS and len(before) == len(after)) or op.name in PAIRS:
        return dim if after[dim : dim + 1] == before[dim : dim + 1] else None
    if op.name in VIEWS:
        return _after_view(before, after, dim)
    return _after_named(op, before, after, dim)


def _after_named(op: Op, before: Sequence[int], after: Sequence[int], dim: int) -> int | None:
    arguments, count = op.arguments, len(before)
    if op.name == "t" and count == 2:
        return 1 - dim
    if op.name == "transpose" and {"dim0", "dim1"} <= arguments.keys():
        one, other = int(arguments["dim0"]) % count, int(arguments["dim1"]) % count
        return {one: other, other: one}.get(dim, dim)
    if op.name == "permute" and "dims" in arguments:
        return [int(each) % count for each in arguments["dims"]].index(dim)
    if op.name == "unsqueeze" and "dim" in arguments:
        return dim + (dim >= int(arguments["dim"]) % (count + 1))
    if op.name == "squeeze" and before[dim] > 1:
        return _after_view(before, after, dim)
    return None


def _after_view(before: Sequence[int], after: Sequence[int], dim: int) -> int | None:
    """Returns the dimension that has the elements of `dim` in it, alone or merged with others: a view keeps the order.

    Null where it is split, and of a dimension of size 1, which may be anywhere.
    """
    if before[dim] <= 1:
        return None
    inside, whole = prod(before[dim + 1 :]), prod(before[dim:])
    holding = [at for at in range(len(after)) if prod(after[at + 1 :]) <= inside and whole <= prod(after[at:])]
    return holding[-1] if holding and after[holding[-1]] > 1 else None
