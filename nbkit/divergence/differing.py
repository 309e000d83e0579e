"""Finds which ops of two recordings compute values that differ from there to the end, whatever the ops are."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from nbkit.divergence.alignment import Call
from nbkit.divergence.distances import NEEDED, distances
from nbkit.divergence.fingerprints import UNKNOWN
from nbkit.divergence.runs import Run

FAR = 128.0  # eps, of the last results of both runs
Unread = tuple[str | None, int]


class Side(NamedTuple):
    """Holds a run: the fingerprint of each row of `tensors`, and which calls make no view."""

    run: Run
    values: list[int]
    is_view: list[bool]

    @property
    def calls(self) -> list[Call]:
        return self.run.calls


class Result(NamedTuple):
    """Holds what a call has written: whether the other run has that value nowhere, and which calls read it."""

    call: int
    row: int
    differs: bool
    readers: list[int]


def differing(sides: Sequence[Side], known: Sequence[set[int]]) -> list[set[int]]:
    """Returns the calls of each run whose results differ, and what reads them, to a last result that both runs have.

    A call whose result led to one that agrees is right, whatever else reads it. What it computes is added to `known`.
    """
    results = [_results(*of_side) for of_side in zip(sides, known, strict=True)]
    unread = [
        {_unread(side, result): result.row for result in of_side if result.differs and not result.readers}
        for side, of_side in zip(sides, results, strict=True)
    ]
    last = {key for key in unread[0].keys() & unread[1].keys() if _is_far(sides, unread[0][key], unread[1][key])}
    found = []
    for side, of_side, values in zip(sides, results, known, strict=True):
        numbers, right = set[int](), set[int]()
        for result in reversed(of_side):
            is_right = bool(side.run.tensors[result.row].eps) and side.values[result.row] in values
            if result.differs and any(reader in right for reader in _of_its_phase(side, result)):
                is_right = True
                values.add(side.values[result.row])
            elif result.differs and (_ends(side, result, last) or not numbers.isdisjoint(result.readers)):
                numbers.add(result.call)
            # The first result is what an op is for, and comes last here. Those of a list are as many ops.
            if not is_right:
                right.discard(result.call)
            elif result.row == side.calls[result.call].outputs[-1] or not _is_of_lists(side.calls[result.call]):
                right.add(result.call)
        found.append(numbers)
    return found


def _of_its_phase(side: Side, result: Result) -> Iterator[int]:
    """Yields the readers of its phase: a backward op may read what it takes no more than the shape of."""
    phase = side.calls[result.call].keys[1][0]
    return (reader for reader in result.readers if side.calls[reader].keys[1][0] == phase)


def _is_of_lists(call: Call) -> bool:
    return str(call.keys[1][2]).startswith(("_foreach", "_fused"))


def _ends(side: Side, result: Result, last: set[Unread]) -> bool:
    return not result.readers and _unread(side, result) in last


def _unread(side: Side, result: Result) -> Unread:
    return side.calls[result.call].keys[1][0], side.run.tensors[result.row].numel


def _is_far(sides: Sequence[Side], left: int, right: int) -> bool:
    """Returns whether two tensors differ by more than rounding of two implementations may add up to."""
    tables = [side.run.table[NEEDED].iloc[[row]] for side, row in zip(sides, (left, right), strict=True)]
    return bool(distances(*tables).error[0] > FAR * coarsest([side.run for side in sides]))


def coarsest(runs: Sequence[Run]) -> float:
    """Returns the largest eps of a dtype of these runs: its rounding may be in any value."""
    return max((tensor.eps for run in runs for tensor in run.tensors), default=0.0)


def _results(side: Side, known: set[int]) -> list[Result]:
    """Returns what the calls of a run have written, in call order; `known` are the values of the other run."""
    results: list[Result] = []
    last: dict[int, Result] = {}  # by memory
    for number, call in enumerate(side.calls):
        if side.is_view[number]:
            continue
        for memory in {side.run.tensors[row].storage for row in call.inputs}:
            if memory in last:
                last[memory].readers.append(number)
        for row in call.outputs:
            tensor, value = side.run.tensors[row], side.values[row]
            last[tensor.storage] = Result(number, row, bool(tensor.eps) and _is_new(value, known), [])
            results.append(last[tensor.storage])
    return results


def _is_new(value: int, known: set[int]) -> bool:
    return value != UNKNOWN and value not in known


def beginnings_of(side: Side, known: set[int], differing: set[int]) -> dict[int, list[int]]:
    """Returns the beginnings among these calls, by op_id (see Alignment)."""
    found = {}
    written: set[int] = set()
    for number, call in enumerate(side.calls):
        if number in differing:
            new = [row for row in call.inputs if _is_new(side.values[row], known)]
            is_masked = bool(call.inputs) and all(side.values[row] == UNKNOWN for row in call.inputs)
            if not is_masked and all(side.run.tensors[row].storage not in written for row in new):
                found[call.op_id] = new
        if not side.is_view[number]:
            written.update(side.run.tensors[row].storage for row in call.outputs)
    return found
