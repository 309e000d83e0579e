"""Finds which ops of two recordings compute values that differ from there to the end, whatever the ops are."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from nbkit.divergence.alignment import Call, Pair
from nbkit.divergence.distances import NEEDED, distances
from nbkit.divergence.fingerprints import UNKNOWN, fingerprints
from nbkit.divergence.runs import Run
from nbkit.divergence.spread import FAR

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


def sides_of(left: Run, right: Run) -> list[Side]:
    """Returns two runs with the values of their tensors."""
    return [
        Side(run, values, _are_views(run)) for run, values in zip((left, right), fingerprints(left, right), strict=True)
    ]


def _are_views(run: Run) -> list[bool]:
    """Returns which calls write nothing that they return."""
    written = run.step.is_written.tolist()
    return [bool(call.outputs) and not any(written[row] for row in call.outputs) for call in run.calls]


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


class Ends:
    """Knows which pairs of results are ends of both runs: no op that both have reads them, or what comes of them.

    Only ops of their phase count, and none that makes no floats: the rank of a result says little about it. What is
    written into parameters, buffers and the state of an optimizer stays, so that it is an end whatever reads it.
    """

    def __init__(self, sides: Sequence[Side], pairs: Sequence[Pair]) -> None:
        self.sides, self.values = sides, [set(side.values) - {UNKNOWN} for side in sides]
        both = [(pair.left.op_id, pair.right.op_id) for pair in pairs if pair.left and pair.right]
        op_ids = [{couple[which] for couple in both} for which in (0, 1)]
        self.uses = [
            _Uses(side, paired, others)
            for side, paired, others in zip(sides, op_ids, reversed(self.values), strict=True)
        ]

    def has(self, rows: tuple[int, int], phase: object) -> bool:
        """Returns whether two results that differ, by their rows of `tensors`, are ends that correspond.

        They do not where each run has both: then others correspond.
        """
        values = [side.values[row] for side, row in zip(self.sides, rows, strict=True)]
        if all(value in of_other for value, of_other in zip(values, reversed(self.values), strict=True)):
            return False
        return all(uses.is_end(row, phase) for uses, row in zip(self.uses, rows, strict=True))

    def are_views_of_others(self, rows: tuple[int, int]) -> bool:
        """Returns whether these results are views of what one run alone has made: what reads it says more of it."""
        ends = [*zip(self.uses, rows, strict=True)]
        return all(row in uses.views for uses, row in ends) and any(uses.held[row] in uses.alone for uses, row in ends)

    def of(self, which: int) -> list[Call]:
        """Returns the calls of one run that are its ends: where it alone has them, they tell of a difference.

        They do not where the other run has the same values, or where these results, or others beside them, lead to what
        both runs have.
        """
        side, uses, others = self.sides[which], self.uses[which], self.values[1 - which]
        return [
            call
            for call in side.calls
            if any(side.values[row] not in others for row in call.outputs)
            and not any(uses.is_read_beside(row, _phase(call)) for row in call.outputs)
        ]


class _Uses:
    """Follows one run: what its ops have written, which calls read that, and whether they lead to a paired op.

    So does a call that makes what the other run has, too: `others` are its values.
    """

    def __init__(self, side: Side, paired: set[int], others: set[int]) -> None:
        self.side, self.paired = side, paired  # by op_id
        self.readers: list[list[int]] = []  # calls, by what was written
        self.beside: list[list[int]] = []  # what the same call has written, with itself
        self.held: dict[int, int] = {}  # what was written that a result holds, by its row
        self.alone: set[int] = set()  # of what was written
        self.lasting: set[int] = set()  # rows of results
        self.views: set[int] = set()
        made = self._follow()
        self.leads = [False] * len(made)
        for number in reversed(range(len(made))):
            call = side.calls[number]
            if any(side.run.tensors[row].eps for row in call.outputs):
                is_led_on = any(self._is_read(one, _phase(call)) for one in made[number])
                self.leads[number] = call.op_id in paired or is_led_on or self._has_values_of(call, others)

    def is_end(self, row: int, phase: object) -> bool:
        return row in self.lasting or not self._is_read(self.held[row], phase)

    def is_read_beside(self, row: int, phase: object) -> bool:
        return any(self._is_read(one, phase) for one in self.beside[self.held[row]])

    def _is_read(self, written: int, phase: object) -> bool:
        return any(self.leads[reader] and _phase(self.side.calls[reader]) == phase for reader in self.readers[written])

    def _has_values_of(self, call: Call, others: set[int]) -> bool:
        """Returns whether a call makes what the other run has, too; one number proves nothing, nor do zeros."""
        tensors, values = self.side.run.tensors, self.side.values
        return all(values[row] in others and tensors[row].numel > 1 and tensors[row].extent for row in call.outputs)

    def _follow(self) -> list[list[int]]:
        """Notes what each call reads and makes; returns what each has written."""
        tensors, latest = self.side.run.tensors, dict[int, int]()  # by memory
        outside: set[int] = set()
        made: list[list[int]] = []
        for number, (call, is_view) in enumerate(zip(self.side.calls, self.side.is_view, strict=True)):
            read = {tensors[row].storage for row in call.inputs}
            for storage in read:
                if storage not in latest:
                    outside.add(storage)
                    latest[storage] = self._new()
                if not is_view:
                    self.readers[latest[storage]].append(number)
            written = set() if is_view else {tensors[row].storage for row in call.outputs}
            latest.update({storage: self._new() for storage in written})
            made.append([latest[storage] for storage in written])
            for one in made[-1]:
                self.beside[one] = made[-1]
            if call.op_id not in self.paired:
                self.alone.update(made[-1])
            if is_view:
                self.views.update(call.outputs)
            for row in call.outputs:
                storage = tensors[row].storage
                self.held[row] = latest[storage]
                if storage in written & read and (storage in outside or _phase(call) == "optimizer"):
                    self.lasting.add(row)
        return made

    def _new(self) -> int:
        self.beside.append([len(self.readers)])
        self.readers.append([])
        return len(self.readers) - 1


def _phase(call: Call) -> object:
    return call.keys[1][0]
