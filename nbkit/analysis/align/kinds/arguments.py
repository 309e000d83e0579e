"""Tests whether two ops that do the same read the same, but for one number: a constant, or an argument of the op."""

import numpy as np

from nbkit.analysis.align.align import Alignment
from nbkit.analysis.align.events import Event
from nbkit.analysis.align.kinds.case import number_text
from nbkit.analysis.align.kinds.rerun import explained
from nbkit.analysis.align.matches import Match
from nbkit.analysis.align.region import Array, Kind
from nbkit.analysis.align.relations import relative_error
from nbkit.analysis.align.side import Side
from nbkit.divergence.arguments import other_arguments

ROOTS = ("sqrt", "rsqrt", "power")
SCALING = ("multiply", "divide", "matmul", "scale")
EPSILONS, SCALES = ("eps", "epsilon", "variance_epsilon"), ("alpha", "scale")


def other_number(alignment: Alignment, event: Event) -> Kind | None:
    """Tests an argument that is a number, then a constant of one element.

    With a constant the right ops run again, reading the left one's; `explained` is what that leaves of the difference.
    Of an argument nothing can run again: the two ops are the same, and read the same.
    """
    match = event.match
    if match is None:
        return None
    left, right = alignment.left, alignment.right
    if left.results[match.left].kind != "op":
        return _constant(alignment, match.left, match.right)
    if left.does[match.left] != right.does[match.right]:
        return None
    ours, theirs = left.results[match.left], right.results[match.right]
    if len(ours.sources) != len(theirs.sources):
        return None
    others = [
        (first, second)
        for first, second in zip(ours.sources, theirs.sources, strict=True)
        if not _is_same(alignment, first, second)
    ]
    if not others:
        return _argument(ours.op, theirs.op, ours.arguments, theirs.arguments)
    return _operand(alignment, match, *others[0]) if len(others) == 1 else None


def _is_same(alignment: Alignment, first: int, second: int) -> bool:
    """Returns whether two operands are a pair that agrees, or numbers that are equal."""
    match = alignment.matches.left_of.get(second)
    if match is not None and match.agrees and match.left == first:
        return True
    values = alignment.left.value(first), alignment.right.value(second)
    if values[0] is None or values[1] is None or values[0].size != values[1].size:
        return False
    return relative_error(values[0].reshape(-1), values[1].reshape(-1)) <= alignment.tolerance / 10


def _argument(op: str | None, other_op: str | None, left: str | None, right: str | None) -> Kind | None:
    """Returns the kind of the one argument in which two calls of an op differ, if it is a number."""
    others = other_arguments(left, right) if op == other_op else {}
    if len(others) != 1:
        return None
    (name, values), *_ = others.items()
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return None
    kind = "epsilon" if name in EPSILONS else "scale" if name in SCALES else "argument"
    texts = [number_text(value) for value in values]
    return Kind(kind, f"The argument {name} of {op} is {texts[0]} on the left, {texts[1]} on the right.", 0.0)


def _operand(alignment: Alignment, match: Match, first: int, second: int) -> Kind | None:
    """Returns the kind of the one number that both ops read, each another one, if they agree when it is the same."""
    left, right = alignment.left, alignment.right
    values = left.execution.value(first), right.execution.value(second)
    if values[0] is None or values[1] is None or values[0].size != 1 or values[1].size != 1:
        return None
    rest = explained(alignment, match, {second: values[0].reshape(values[1].shape)})
    return None if rest is None else _number(left, match.left, values[0], values[1], rest)


def _constant(alignment: Alignment, first: int, second: int) -> Kind | None:
    """Returns the kind of a constant of one element that is another number, by the one op that reads it."""
    left, right = alignment.left, alignment.right
    values = left.value(first), right.value(second)
    if left.results[first].kind != "constant" or values[0] is None or values[1] is None:
        return None
    if values[0].size != 1 or values[1].size != 1:
        return None
    for side, number in ((right, second), (left, first)):  # one side may hold equal numbers once
        readers = side.execution.readers[number]
        if len(readers) == 1:
            return _number(side, readers[0], values[0], values[1], 0.0)
    return None


def _number(side: Side, reader: int, left: Array, right: Array, rest: float) -> Kind:
    """Names a number by what is done with it: an epsilon is added before a root is taken."""
    numbers = [float(np.real(value.reshape(-1)[0])) for value in (left, right)]
    roots = [side.does[one] for one in side.execution.readers[reader]]
    does, texts = side.does[reader], [number_text(number) for number in numbers]
    op = side.results[reader].op
    if does == "add" and any(one in ROOTS for one in roots):
        kind, what = "epsilon", "The number that is added before the root"
    elif does in SCALING:
        kind, what = "scale", f"The number by which {op} scales"
    else:
        kind, what = "argument", f"The number that {op} reads"
    return Kind(kind, f"{what} is {texts[0]} on the left, {texts[1]} on the right.", rest)
