"""Aligns the ops of two recordings by module, name and results."""

import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

Key = tuple[Any, ...]
# These stand in one run where the other has none; they are never taken for another op of the same shape.
CASTS = ("_to_copy", "copy", "clone", "detach", "lift_fresh", "alias")


class Call(NamedTuple):
    """Holds an aten op of a recording, and the rows in `tensors` of what it reads and returns."""

    op_id: int
    inputs: list[int]
    outputs: list[int]
    keys: tuple[Key, Key, Key | None]  # from the strictest to the loosest; None never matches


class Pair(NamedTuple):
    """Holds two calls that are the same op, or one without a counterpart."""

    left: Call | None
    right: Call | None
    evidence: str | None = None


def calls_of(ops: pd.DataFrame, tensors: pd.DataFrame) -> list[Call]:
    """Returns the aten ops that tensors go into or come out of, in call order."""
    op_ids = tensors["op_id"].to_numpy()
    order = np.argsort(op_ids, kind="stable")
    starts = np.flatnonzero(np.diff(op_ids[order], prepend=-1))
    roles, shapes, names, dtypes = (tensors[name].tolist() for name in ("role", "shape", "name", "dtype"))
    columns = {name: ops[name].tolist() for name in ("phase", "model", "module", "op")}
    calls = []
    for chosen in np.split(order, starts[1:]) if len(order) else []:
        rows = [int(row) for row in chosen]
        op_id = int(op_ids[rows[0]])
        inputs, outputs = ([row for row in rows if roles[row] == role] for role in ("input", "output"))
        phase, model, module, op = (_plain(columns[name][op_id]) for name in columns)
        packet, output_shapes = packet_of(op), tuple(shapes[row] for row in outputs)
        strict = (phase, model, module, op, output_shapes, tuple(_plain(names[row]) for row in inputs))
        kinds = tuple("float" in dtypes[row] or "complex" in dtypes[row] for row in outputs)
        by_shape = None if packet in CASTS or not output_shapes else (phase, module, output_shapes, kinds)
        calls.append(Call(op_id, inputs, outputs, (strict, (phase, module, packet), by_shape)))
    return calls


@cache
def packet_of(op: str | None) -> str:
    """Returns the name of an aten op without overload and in-place mark: "relu" of "aten.relu_.default"."""
    name = re.sub(r"^aten\.", "", op or "").split(".")[0]
    return name.removesuffix("_for_cpu").rstrip("_") or name


def aligned(left: Sequence[Call], right: Sequence[Call]) -> list[Pair]:
    """Returns pairs and calls without a counterpart, each run in its own order.

    Calls of the same module, name, shapes and parameters first; between those, the same op of that module whatever its
    overload; and last, whatever gives the same shapes there, so that an op that was replaced meets what replaced it.
    """
    return [*_between(left, right, 0)]


def _between(left: Sequence[Call], right: Sequence[Call], level: int) -> Iterator[Pair]:
    if level == len(EVIDENCE) or not (left and right):
        yield from (Pair(left_call, None) for left_call in left)
        yield from (Pair(None, right_call) for right_call in right)
        return
    keys = [_keys(calls, level, _unmatched(side)) for side, calls in enumerate((left, right))]
    for first, second, size, before in matching_blocks(*keys):
        yield from _between(left[before[0] : first], right[before[1] : second], level + 1)
        for left_call, right_call in zip(left[first : first + size], right[second : second + size], strict=True):
            yield Pair(left_call, right_call, EVIDENCE[level])


EVIDENCE = ("name", "name", "structure")


def _unmatched(side: int) -> Callable[[int], Hashable]:
    return lambda number: (side, number)


def _keys(calls: Sequence[Call], level: int, unmatched: Callable[[int], Hashable]) -> list[Hashable]:
    return [
        unmatched(number) if (key := call.keys[level]) is None else ("key", *key) for number, call in enumerate(calls)
    ]


def matching_blocks(
    left: Sequence[Hashable], right: Sequence[Hashable]
) -> Iterator[tuple[int, int, int, tuple[int, int]]]:
    """Yields runs of equal keys as (start in left, in right, length, ends of the one before); the last is empty."""
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


def _plain(value: Any) -> Any:
    return value if isinstance(value, str) else None
