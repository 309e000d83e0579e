"""Judges two runs that were aligned by their values: at which op they begin to differ, and what only inherits it."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from nbkit.divergence.alignment import Pair
from nbkit.divergence.by_value import Alignment
from nbkit.divergence.conditioning import conditioning
from nbkit.divergence.differing import coarsest
from nbkit.divergence.runs import Read, Run
from nbkit.divergence.spread import LEEWAY, Verdict, in_words
from nbkit.ops.names import base_of

SIDES = ("left", "right")


class Compared(NamedTuple):
    """Holds what is known of the tensors that both calls of a pair read and return."""

    read: list[Read]
    made: list[Read]


def judged_by_value(
    runs: tuple[Run, Run], alignment: Alignment, rows: Sequence[Mapping[str, Any]], compared: Mapping[int, Compared]
) -> list[Verdict]:
    """Returns the verdict of each row; `compared` has the rows of pairs.

    A difference begins at a pair that reads the same and returns something else. Where there is none, because the two
    compute the same in other ways, it begins at the first op of either run whose inputs are in both runs and from whose
    result values differ to the end.
    """
    pairs = alignment.pairs
    eps = coarsest(runs)
    judged = {number: _judged(pairs[number], tensors, eps) for number, tensors in compared.items()}
    sure = {
        number: found
        for number, tensors in compared.items()
        if pairs[number].evidence == "structure"
        and (found := _beginning(alignment, number, rows[number]["op"], tensors, judged[number])) is not None
    }
    beginnings = sure or _first_of_either(alignment, rows)
    return _inherited(runs, alignment, judged, beginnings)


def _judged(pair: Pair, tensors: Compared, eps: float) -> Verdict:
    read, made = tensors
    before = max((tensor.error for tensor in read), default=0.0)
    worst = max(made, key=lambda tensor: tensor.error)
    allowed = LEEWAY * max(before, eps)
    return Verdict(before, worst.error, allowed, "clean" if pair.evidence == "values" else None)


def _beginning(alignment: Alignment, number: int, op: str, tensors: Compared, judged: Verdict) -> Verdict | None:
    """Returns the verdict of a pair of one op at which a difference begins; None of another."""
    left, right = alignment.pairs[number].left, alignment.pairs[number].right
    assert left is not None and right is not None
    new = [of_side.get(call.op_id) for of_side, call in zip(alignment.beginnings, (left, right), strict=True)]
    if None in new or judged.output_error is None or judged.allowed_error is None:
        return None
    other = [(place, tensor) for place, tensor in enumerate(tensors.read) if tensor.error > LEEWAY * tensor.eps]
    if all(new):
        place, tensor = other[0] if other else (0, tensors.read[0])
        name = f" ({tensor.left.name})" if tensor.left.name else ""
        message = f"input {place}{name} differs, and no recorded op made it: {tensor.what}"
        return judged._replace(error_class="input", message=message, origin_id=number) if other else None
    worst = max(tensors.made, key=lambda tensor: tensor.error)
    allowed = judged.allowed_error * conditioning(base_of(op), tensors.read, worst)
    if any(new) or other or judged.output_error <= allowed:
        return None
    judged = judged._replace(allowed_error=allowed, error_class="local", origin_id=number)
    return judged._replace(message=in_words(base_of(op), judged, worst))


def _first_of_either(alignment: Alignment, rows: Sequence[Mapping[str, Any]]) -> dict[int, Verdict]:
    first = [
        number
        for side, beginnings in enumerate(alignment.beginnings)
        if (number := _first(alignment.pairs, side, beginnings)) is not None
    ]
    if not first:
        return {}
    number = min(first)
    side = "right" if rows[number]["action"] == "right_only" else "left"
    there = next((rows[other] for other in first if other != number), None)
    message = (
        f"what it reads is in both runs, its result in the {side} run only, and what comes of it differs to the end: "
        f"the cause is there or shortly after"
    )
    if there is not None:
        message += f"; in the {'left' if side == 'right' else 'right'} run that begins at {_place(there)}"
    return {number: Verdict(error_class="local", origin_id=number, message=message)}


def _first(pairs: Sequence[Pair], side: int, beginnings: Mapping[int, list[int]]) -> int | None:
    """Returns the first of these rows that reads something, else the first that makes a tensor of nothing."""
    calls = [(number, call) for number, pair in enumerate(pairs) if (call := (pair.left, pair.right)[side]) is not None]
    found = [(not call.inputs, number) for number, call in calls if call.op_id in beginnings]
    return min(found)[1] if found else None


def _place(row: Mapping[str, Any]) -> str:
    return f"{row['op']} ({row['source']})" if isinstance(row["source"], str) else str(row["op"])


def _inherited(
    runs: tuple[Run, Run], alignment: Alignment, judged: Mapping[int, Verdict], beginnings: Mapping[int, Verdict]
) -> list[Verdict]:
    """Returns the verdicts of all rows, with the beginning that each difference goes back to."""
    origins: tuple[dict[int, int], dict[int, int]] = ({}, {})  # by memory
    verdicts = []
    for number, pair in enumerate(alignment.pairs):
        verdict = beginnings.get(number, judged.get(number, Verdict()))
        for run, call, memory, differing in zip(runs, pair[:2], origins, alignment.differing, strict=True):
            if call is None:
                continue
            known = [memory[tensor.storage] for tensor in run.read(call) if tensor.storage in memory]
            origin = verdict.origin_id if number in beginnings else next(iter(known), None)
            if origin is None or call.op_id not in differing:
                continue
            memory.update(dict.fromkeys((tensor.storage for tensor in run.made(call)), origin))
            if number not in beginnings:
                verdict = verdict._replace(error_class="propagated", origin_id=origin)
        verdicts.append(verdict)
    return verdicts
