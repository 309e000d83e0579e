"""Tests whether two ops that do the same read the same, but for one number: a constant, or an argument of the op."""

import json
from collections.abc import Sequence
from dataclasses import replace
from types import NoneType
from typing import Any

import numpy as np

from nbkit.analysis.align.align import Alignment
from nbkit.analysis.align.differing import SLICING
from nbkit.analysis.align.events import Event
from nbkit.analysis.align.kinds.case import number_text
from nbkit.analysis.align.kinds.norms.recorded import EPSILON_ARGUMENTS
from nbkit.analysis.align.matches import Match
from nbkit.analysis.align.region import Array, Kind
from nbkit.analysis.align.rerun import explained, is_same, other_operands
from nbkit.analysis.align.side import Side
from nbkit.divergence.arguments import Pairs, in_words, other_arguments
from nbkit.ops.families import CONVOLUTIONS
from nbkit.ops.kinds import ROOTS, SCALES
from nbkit.step.decode import arguments_of

SCALING = SCALES | {"matmul"}
SCALE_ARGUMENTS = ("alpha", "scale")
AXES = ("dim", "axis", "axes")
# These change the shape of a result, where it lies, or how it is rounded.
OF_FORM = ("keepdim", "copy", "implicit", "cudnn_enabled", "dtype", "layout", "memory_format")


def argument_alone(alignment: Alignment, event: Event) -> Kind | None:
    """Tests for one number or truth value in which two calls of an op differ that read the same.

    It is known, and nothing else can be the cause: what values let one infer stands behind it.
    """
    match = event.match
    if match is None or alignment.left.results[match.left].kind != "op":
        return None
    if other_operands(alignment, match.left, match.right) != []:
        return None
    is_view = alignment.left.is_passing[match.left]
    return _argument(alignment, match.left, match.right, (int, float) if is_view else (int, float, list))


def other_argument(alignment: Alignment, event: Event) -> Kind | None:
    """Tests whether two results without a partner are made of the same by one op with another argument, as an axis."""
    for one in alignment.events:
        ours, theirs = event.left or one.left, event.right or one.right
        if one.match is not None or not ours or not theirs or other_operands(alignment, ours[0], theirs[0]) != []:
            continue
        if (kind := _argument(alignment, ours[0], theirs[0], (int, float, list))) is not None:
            return replace(kind, at=(ours[0], theirs[0]))
    return None


def other_number(alignment: Alignment, event: Event) -> Kind | None:
    """Tests an argument that is a number, then a constant of one element.

    With a constant the right ops run again, reading the left one's; `explained` is what that leaves of the difference.
    Of an argument nothing can run again: the two ops are the same, and read the same.
    """
    match = event.match
    if match is None:
        return None
    if alignment.left.results[match.left].kind != "op":
        return _constant(alignment, match.left, match.right)
    others = other_operands(alignment, match.left, match.right)
    if others is None:
        return None
    if not others:
        return _argument(alignment, match.left, match.right, (int, float, str, list, NoneType))
    return _operand(alignment, match, *others[0]) if len(others) == 1 else None


def other_padding(alignment: Alignment, event: Event) -> Kind | None:
    """Tests whether two convolutions of the same differ in the zeros around it, which an op in front of one may add."""
    match, left, right = event.match, alignment.left, alignment.right
    if match is None or left.does[match.left] not in CONVOLUTIONS:
        return None
    ours, theirs = left.results[match.left].sources, right.results[match.right].sources
    first, second = _padded(left, match.left), _padded(right, match.right)
    if first is None or second is None or len(ours) != len(theirs) or first[1] == second[1]:
        return None
    pairs = [(first[0], second[0]), *zip(ours[1:], theirs[1:], strict=True)]
    others = differing_arguments(left, right, match.left, match.right).keys() - {"padding"}
    if others or not all(is_same(alignment, *pair) for pair in pairs):
        return None
    texts = [", ".join(json.dumps(width) for width in widths) for _, widths in (first, second)]
    message = f"The zeros before and behind each convolved axis are {texts[0]} on the left, {texts[1]} on the right."
    return Kind("padding", message, 0.0)


def _padded(side: Side, number: int) -> tuple[int, list[tuple[int, int]]] | None:
    """Returns what a convolution reads before zeros are added, and how many before and behind it along each axis."""
    given, before = arguments_of(side.results[number].arguments), side.results[number].sources[0]
    widths = [(one, one) for one in given.get("padding") or ()]
    if given.get("transposed") or not widths:
        return None
    while side.does[before] == "pad":
        adds = arguments_of(side.results[before].arguments)
        pad = [*adds.get("pad", ()), *[0] * 2 * len(widths)][: 2 * len(widths)]  # from the last axis on
        if adds.get("value") or "pad" not in adds or len(adds["pad"]) > len(pad):
            return None
        added = [*zip(pad[::2], pad[1::2], strict=True)][::-1]
        widths = [(one[0] + more[0], one[1] + more[1]) for one, more in zip(widths, added, strict=True)]
        before = side.results[before].sources[0]
    return before, widths


def _argument(alignment: Alignment, first: int, second: int, types: tuple[type, ...]) -> Kind | None:
    """Returns the kind of the one argument in which two calls of an op differ, if its values are of some types."""
    left, right = alignment.left, alignment.right
    ours, others, does = left.results[first], differing_arguments(left, right, first, second), left.does[first]
    if (does in SLICING or does in CONVOLUTIONS) and len(others) > 1:
        return Kind("argument", f"Of {ours.op} {in_words(others)}.", 0.0)
    if len(others) != 1:
        return None
    (name, values), *_ = others.items()
    if name in OF_FORM or not all(isinstance(value, types) for value in values):
        return None
    ends = f"{_text(values[0])} on the left, {_text(values[1])} on the right."
    if name == "other" and does == "add" and _is_before_root(left, first):
        return Kind("epsilon", f"The number that is added before the root is {ends}", 0.0)
    if name in EPSILON_ARGUMENTS and does.endswith("norm"):
        return Kind("epsilon", f"The norm has epsilon {ends}", 0.0)
    if name == "other" and does in SCALING:
        return Kind("scale", f"The number by which {ours.op} scales is {ends}", 0.0)
    kind = "epsilon" if name in EPSILON_ARGUMENTS else "scale" if name in SCALE_ARGUMENTS else "argument"
    return Kind(kind, f"The argument {name} of {ours.op} is {ends}", 0.0)


def differing_arguments(left: Side, right: Side, first: int, second: int) -> Pairs:
    """Returns the arguments in which two calls of one op differ; axes are the same from whichever end they count."""
    ours, theirs = left.results[first], right.results[second]
    others = other_arguments(ours.arguments, theirs.arguments) if ours.op == theirs.op else {}
    rank = len(left.results[ours.sources[0]].shape) if ours.sources else 0
    return {
        name: pair for name, pair in others.items() if name not in AXES or _axes(pair[0], rank) != _axes(pair[1], rank)
    }


def _axes(value: Any, rank: int) -> list[Any]:
    """Returns axes as they are counted from the first one."""
    found = value if isinstance(value, list) else [value]
    return [one % rank if isinstance(one, int) and rank else one for one in found]


def _text(value: Any) -> str:
    """Returns an argument as a reader of Python writes it."""
    if value is None:
        return "not given"
    if isinstance(value, str | bool):
        return str(value)
    return json.dumps(value) if isinstance(value, Sequence) else number_text(value)


def _is_before_root(side: Side, number: int) -> bool:
    return any(side.does[reader] in ROOTS for reader in side.execution.readers[number])


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
    does, texts = side.does[reader], [number_text(number) for number in numbers]
    op = side.results[reader].op
    if does == "add" and _is_before_root(side, reader):
        kind, what = "epsilon", "The number that is added before the root"
    elif does in SCALING:
        kind, what = "scale", f"The number by which {op} scales"
    else:
        kind, what = "argument", f"The number that {op} reads"
    return Kind(kind, f"{what} is {texts[0]} on the left, {texts[1]} on the right.", rest)
