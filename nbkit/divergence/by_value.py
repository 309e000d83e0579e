"""Aligns two recordings whose modules have other names by the values that their ops compute.

Two implementations of one model agree in some results (each projection, each block) and differ between them: in how
often they reshape, in which order they multiply. Ops with the same values are pairs. What lies between pairs that agree
means nothing, so that it stays alone; only where values differ from some op on to the end of the run are ops of the
same name and shapes taken for pairs, too, and judged.
"""

from collections.abc import Sequence
from typing import NamedTuple

from nbkit.divergence.alignment import Call, Key, Keys, Pair, aligned_by
from nbkit.divergence.differing import Side, beginnings_of, differing, sides_of
from nbkit.divergence.fingerprints import UNKNOWN
from nbkit.divergence.runs import Run
from nbkit.ops.families import COPIES

SHARED = 0.5
EVIDENCE = ("values", "values", "structure")


class Alignment(NamedTuple):
    """Holds the pairs of two runs, and by op_id of each run the ops from which values differ to the end of both.

    `beginnings` are those of them that read only what both runs have, or what no recorded op made; of the latter they
    hold the rows in `tensors` that the other run has nowhere.
    """

    pairs: list[Pair]
    differing: tuple[set[int], set[int]]
    beginnings: tuple[dict[int, list[int]], dict[int, list[int]]]


def has_other_modules(left: Run, right: Run) -> bool:
    """Returns whether more than half of the ops in modules of either run are in modules that the other one lacks."""
    modules = [[call.keys[1][1] for call in run.calls if call.keys[1][1]] for run in (left, right)]
    names = [set(side) for side in modules]
    shares = [
        sum(module in other for module in side) / len(side)
        for side, other in zip(modules, reversed(names), strict=True)
        if side
    ]
    return bool(shares) and min(shares) < SHARED


def aligned_by_value(left: Run, right: Run) -> Alignment:
    """Returns pairs and calls without a counterpart, each run in its own order, and where values begin to differ."""
    sides = sides_of(left, right)
    known = [set(side.values) for side in reversed(sides)]
    numbers_of = differing(sides, known)
    keys = [[_value_keys(side, call, number) for number, call in enumerate(side.calls)] for side in sides]
    by_structure = [
        [_structure_key(side, call) if number in numbers else None for number, call in enumerate(side.calls)]
        for side, numbers in zip(sides, numbers_of, strict=True)
    ]
    levels: list[Keys] = [*(([key[level] for key in keys[0]], [key[level] for key in keys[1]]) for level in (0, 1))]
    levels.append((by_structure[0], by_structure[1]))
    found = [_in_one_order(sides, pair) for pair in aligned_by((left.calls, right.calls), levels, EVIDENCE)]
    beginnings = [beginnings_of(*of_side) for of_side in zip(sides, known, numbers_of, strict=True)]
    op_ids = [{side.calls[number].op_id for number in numbers} for side, numbers in zip(sides, numbers_of, strict=True)]
    pairs = _joined(sides, beginnings, found)
    return Alignment(pairs, (op_ids[0], op_ids[1]), (beginnings[0], beginnings[1]))


def _joined(sides: Sequence[Side], beginnings: Sequence[dict[int, list[int]]], pairs: list[Pair]) -> list[Pair]:
    """Returns the pairs with those of two beginnings that read the same, in whatever order both runs have them."""
    alone: list[dict[Key, list[int]]] = [{}, {}]
    for number, pair in enumerate(pairs):
        call = pair.left if pair.right is None else pair.right if pair.left is None else None
        which = 0 if pair.right is None else 1
        if call is not None and (new := beginnings[which].get(call.op_id)) is not None:
            inputs = (None if row in new else sides[which].values[row] for row in call.inputs)
            alone[which].setdefault((*_structure_key(sides[which], call), *inputs), []).append(number)
    couples = [
        couple for key in alone[0] if key in alone[1] for couple in zip(alone[0][key], alone[1][key], strict=False)
    ]
    joined = {min(couple): Pair(pairs[couple[0]].left, pairs[couple[1]].right, "structure") for couple in couples}
    gone = {max(couple) for couple in couples}
    return [joined.get(number, pair) for number, pair in enumerate(pairs) if number not in gone]


def _in_one_order(sides: Sequence[Side], pair: Pair) -> Pair:
    """Returns a pair, its tensors in one order where they are the same: lists of an optimizer, a + b and b + a."""
    if pair.evidence != "values" or pair.left is None or pair.right is None:
        return pair
    inputs = _in_order(sides, pair.left.inputs, pair.right.inputs)
    outputs = _in_order(sides, pair.left.outputs, pair.right.outputs)
    return pair._replace(right=pair.right._replace(inputs=inputs, outputs=outputs))


def _in_order(sides: Sequence[Side], left: list[int], right: list[int]) -> list[int]:
    wanted, given = [sides[0].values[row] for row in left], [sides[1].values[row] for row in right]
    if wanted == given or sorted(wanted) != sorted(given):
        return right
    places = sorted(range(len(left)), key=lambda place: wanted[place])
    rows = sorted(right, key=lambda row: sides[1].values[row])
    return [row for _, row in sorted(zip(places, rows, strict=True))]


def _value_keys(side: Side, call: Call, number: int) -> tuple[Key | None, Key | None]:
    """Returns the phase, the name and the values that a call computes; and the same without the name if it computes."""
    phase, _, packet = call.keys[1]
    values = sorted(side.values[row] for row in call.outputs)
    if not values or UNKNOWN in values:
        return None, None
    computes = not side.is_view[number] and packet not in COPIES
    return (phase, packet, *values), (phase, *values) if computes else None


def _structure_key(side: Side, call: Call) -> Key:
    phase, _, packet = call.keys[1]
    return (phase, packet, *(side.run.tensors[row].shape for row in call.outputs))
