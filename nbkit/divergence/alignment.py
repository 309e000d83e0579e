"""Aligns the ops of two recordings by module, name and results."""

from collections.abc import Hashable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from nbkit.ops.families import COPIES
from nbkit.ops.names import base_of
from nbkit.step.decode import cells_in
from nbkit.step.step import Step

EVIDENCE = ("name", "name", "structure")
Key = tuple[Any, ...]
Keys = tuple[Sequence[Key | None], Sequence[Key | None]]
Span = tuple[int, int]


class Call(NamedTuple):
    """Holds an aten op of a recording, and the rows in `tensors` of what it reads and returns."""

    op_id: int
    inputs: list[int]
    outputs: list[int]
    keys: tuple[Key, Key, Key | None]  # from the strictest to the loosest; None never matches


Sides = tuple[Sequence[Call], Sequence[Call]]


class Pair(NamedTuple):
    """Holds two calls that are the same op, or one without a counterpart."""

    left: Call | None
    right: Call | None
    evidence: str | None = None


def calls_of(step: Step) -> list[Call]:
    """Returns the aten ops that tensors go into or come out of, in call order."""
    shapes, names, dtypes = (cells_in(step.tensors[name]) for name in ("shape", "name", "dtype"))
    columns = [cells_in(step.ops[name]) for name in ("phase", "model", "module", "op")]
    calls = []
    for op_id, inputs, outputs in step.calls():
        phase, model, module, op = (column[op_id] for column in columns)
        packet, output_shapes = base_of(op).removesuffix("_for_cpu"), tuple(shapes[row] for row in outputs)
        strict = (phase, model, module, op, output_shapes, tuple(names[row] for row in inputs))
        kinds = tuple("float" in dtypes[row] or "complex" in dtypes[row] for row in outputs)
        by_shape = None if packet in COPIES or not output_shapes else (phase, module, output_shapes, kinds)
        calls.append(Call(op_id, inputs, outputs, (strict, (phase, module, packet), by_shape)))
    return calls


def aligned(left: Sequence[Call], right: Sequence[Call]) -> list[Pair]:
    """Returns pairs and calls without a counterpart, each run in its own order.

    Calls of the same module, name, shapes and parameters first; between those, the same op of that module whatever its
    overload; and last, whatever gives the same shapes there, so that an op that was replaced meets what replaced it.
    Casts come after all of them, between those pairs: one run may have many that the other has not, and they are alike.
    """
    computing = [call for call in left if not _is_cast(call)], [call for call in right if not _is_cast(call)]
    levels = [
        ([call.keys[level] for call in computing[0]], [call.keys[level] for call in computing[1]]) for level in range(3)
    ]
    return [*_with_casts((left, right), aligned_by(computing, levels, EVIDENCE))]


def _with_casts(sides: Sides, pairs: Sequence[Pair]) -> Iterator[Pair]:
    """Yields these pairs, and between them those of casts and the calls without a counterpart."""
    places = [{call.op_id: place for place, call in enumerate(side)} for side in sides]
    left = right = 0
    for pair in pairs:
        if pair.left is not None and pair.right is not None:
            ends = places[0][pair.left.op_id], places[1][pair.right.op_id]
            yield from _casts((sides[0][left : ends[0]], sides[1][right : ends[1]]))
            yield pair
            left, right = ends[0] + 1, ends[1] + 1
    yield from _casts((sides[0][left:], sides[1][right:]))


def _casts(sides: Sides) -> Iterator[Pair]:
    keys = [[call.keys if _is_cast(call) else (None, None) for call in side] for side in sides]
    levels = [([key[level] for key in keys[0]], [key[level] for key in keys[1]]) for level in range(2)]
    yield from aligned_by(sides, levels, EVIDENCE[:2])


def _is_cast(call: Call) -> bool:
    return call.keys[1][2] in COPIES


def aligned_by(sides: Sides, levels: Sequence[Keys], evidence: Sequence[str]) -> list[Pair]:
    """Returns pairs of calls with equal keys and calls without a counterpart, each run in its own order.

    A level has a key for each call of both runs, null where it never matches, and pairs what those before it left
    between their pairs; `evidence` names the levels.
    """
    whole = (0, len(sides[0])), (0, len(sides[1]))
    return [*_between(sides, levels, evidence, whole, 0)]


def _between(
    sides: Sides, levels: Sequence[Keys], evidence: Sequence[str], ends: tuple[Span, Span], level: int
) -> Iterator[Pair]:
    lefts, rights = (calls[start:end] for calls, (start, end) in zip(sides, ends, strict=True))
    if level == len(levels) or not (lefts and rights):
        yield from (Pair(call, None) for call in lefts)
        yield from (Pair(None, call) for call in rights)
        return
    keys = [
        [(which, number) if (key := levels[level][which][number]) is None else key for number in range(*span)]
        for which, span in enumerate(ends)
    ]
    (left, _), (right, _) = ends
    for first, second, size, before in matching_blocks(*keys):
        inner = (left + before[0], left + first), (right + before[1], right + second)
        yield from _between(sides, levels, evidence, inner, level + 1)
        for pair in zip(lefts[first : first + size], rights[second : second + size], strict=True):
            yield Pair(*pair, evidence[level])


def matching_blocks(
    left: Sequence[Hashable], right: Sequence[Hashable]
) -> Iterator[tuple[int, int, int, tuple[int, int]]]:
    """Yields runs of equal keys as (start in left, in right, length, ends of the one before); the last is empty.

    The longest run first, then those around it: runs of one step repeat the same few ops over and over, and of as many
    pairs as there can be (common_sequence in analysis/graph_match) some are of other calls.
    """
    same = next(
        (n for n, (left_key, right_key) in enumerate(zip(left, right, strict=False)) if left_key != right_key), None
    )
    same = min(len(left), len(right)) if same is None else same
    yield 0, 0, same, (0, 0)
    before = same, same
    # What both begin with is most of it, and is found at once.
    blocks = SequenceMatcher(None, left[same:], right[same:], autojunk=False).get_matching_blocks()
    for block in blocks:
        first, second = block.a + same, block.b + same
        yield first, second, block.size, before
        before = first + block.size, second + block.size
