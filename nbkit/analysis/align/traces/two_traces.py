"""Aligns two recorded traces: their ops are paired and judged as compare_values does, which needs no values.

Statistics alone say little about which result is which, and nothing can run again. Ops in call order by module and
name, and how a difference spreads from op to op (nbkit/divergence), say more than matching by values can.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nbkit.analysis.align.align import Alignment, align, blank_agree
from nbkit.analysis.align.differing import differing
from nbkit.analysis.align.events import Event, alone_events
from nbkit.analysis.align.matches import Match, Matches
from nbkit.analysis.align.matching.by_context import match_names
from nbkit.analysis.align.relations import Relation
from nbkit.analysis.align.side import Side
from nbkit.analysis.align.traces.from_trace import TraceExecution
from nbkit.divergence.alignment import Call
from nbkit.divergence.columns import tensor_relation
from nbkit.divergence.differing import Ends, sides_of
from nbkit.divergence.runs import Read, has_values, run_of
from nbkit.divergence.side_by_side import Judged, judged
from nbkit.divergence.spread import LEEWAY
from nbkit.trace.executions.execution import Execution, Result

Traces = tuple[TraceExecution, TraceExecution]


def aligned(left: Execution, right: Execution) -> Alignment:
    """Returns the alignment of two executions; of two traces with statistics it says what compare_values says."""
    if not (isinstance(left, TraceExecution) and isinstance(right, TraceExecution)):
        return align(left, right)
    is_known = has_values(left.step.tensors) and has_values(right.step.tensors)
    return _aligned_traces((left, right)) if is_known else align(left, right)


def _aligned_traces(traces: Traces) -> Alignment:
    left, right = (run_of(trace.step) for trace in traces)
    found = judged(left, right)
    sides = Side(traces[0]), Side(traces[1])
    matches, errors = Matches(), dict[int, float]()
    events: dict[int, Event] = {}  # by row
    for number, row in enumerate(found.rows):
        for match, error in _matches(traces, found, number, matches):
            matches.add(match)
            errors[id(match)] = error
        if row.get("origin_id") == number:
            events[number] = _event(traces, found, number, matches, errors)
    match_names(*sides, matches)
    for before, after in (changed := blank_agree(*sides, matches)):
        errors[id(after)] = errors.get(id(before), 0.0)
    matches.replace(changed)
    origins = _origins(traces, found, [*events])
    begins, differs = [*events.values()], (set(origins[0]), set(origins[1]))
    # What only one run has and nothing reads shows at no op that both have. Of two implementations it says nothing.
    if not events and all(pair.evidence != "values" for pair in found.pairs):
        ends = Ends(sides_of(left, right), found.pairs)
        lefts, rights = differing(*sides, matches)
        differs = lefts & _ends_of(traces[0], ends.of(0)), rights & _ends_of(traces[1], ends.of(1))
        begins = sorted(alone_events(*sides, matches, differs), key=lambda event: event.order)
    known = tuple(errors.get(id(match)) for match in matches.all)
    tolerance = LEEWAY * max(side.coarsest for side in sides)
    return Alignment(*sides, matches, tolerance, differs, known, events=tuple(begins), origins=origins)


def _matches(traces: Traces, found: Judged, number: int, matches: Matches) -> Iterator[tuple[Match, float]]:
    """Yields the matches that a pair of ops makes, with their errors: of new state that both read, of their results."""
    pair, row = found.pairs[number], found.rows[number]
    if pair.left is None or pair.right is None:
        return
    for first, second, read in _couples(traces, found, number, "read"):
        is_state = "op" not in (first.kind, second.kind)
        if is_state and first.result_id not in matches.right_of and second.result_id not in matches.left_of:
            evidence = "name" if first.name == second.name else "structure"
            agrees = read.error <= LEEWAY * read.eps
            yield _match(first, second, evidence, agrees=agrees), read.error
    for first, second, made in _couples(traces, found, number, "made"):
        yield _match(first, second, str(pair.evidence), agrees=row.get("error_class") == "clean"), made.error


def _couples(traces: Traces, found: Judged, number: int, role: str) -> Iterator[tuple[Result, Result, Read]]:
    """Yields what both ops of a pair read or made, at equal positions, with how far they are apart."""
    pair, compared = found.pairs[number], found.compared[number]
    assert pair.left is not None and pair.right is not None
    rows, reads = (
        ((pair.left.inputs, pair.right.inputs), compared.read)
        if role == "read"
        else ((pair.left.outputs, pair.right.outputs), compared.made)
    )
    for left, right, read in zip(*rows, reads, strict=False):
        yield traces[0].result_of(left), traces[1].result_of(right), read


def _match(left: Result, right: Result, evidence: str, *, agrees: bool) -> Match:
    name = tensor_relation(left.shape, right.shape, (left.dtype, right.dtype))
    relation = None if name == "other" else Relation(name, left.shape, right.shape)
    return Match(left.result_id, right.result_id, evidence, relation, agrees and relation is not None)


def _event(traces: Traces, found: Judged, number: int, matches: Matches, errors: Mapping[int, float]) -> Event:
    """Returns the beginning at a row: at the state that differs, else at the result that is farthest off."""
    pair, row = found.pairs[number], found.rows[number]
    if pair.left is None or pair.right is None:
        ends = [_made(trace, call)[:1] for trace, call in zip(traces, pair[:2], strict=True)]
        return Event(None, ends[0], ends[1], number, message=row["message"])
    if row["error_class"] == "input":
        read = [matches.right_of.get(first.result_id) for first, _, _ in _couples(traces, found, number, "read")]
        for match in read:
            if match is not None and not match.agrees and traces[0].results[match.left].kind != "op":
                return Event(match, (match.left,), (match.right,), number)
    made = [matches.right_of[first.result_id] for first, _, _ in _couples(traces, found, number, "made")]
    match = max(made, key=lambda match: errors[id(match)])
    return Event(match, (match.left,), (match.right,), number, message=row["message"])


def _ends_of(trace: TraceExecution, calls: Sequence[Call]) -> set[int]:
    return {number for call in calls for number in _made(trace, call)}


def _made(trace: TraceExecution, call: Call | None) -> tuple[int, ...]:
    return () if call is None else tuple(trace.result_of(row).result_id for row in call.outputs)


def _origins(traces: Traces, found: Judged, beginnings: list[int]) -> tuple[dict[int, int], dict[int, int]]:
    """Returns by result_id of each side the number of the event that the difference of a result goes back to."""
    numbers = {row: number for number, row in enumerate(beginnings)}
    origins: tuple[dict[int, int], dict[int, int]] = ({}, {})
    for pair, row in zip(found.pairs, found.rows, strict=True):
        origin: Any = row.get("origin_id")
        if origin in numbers:
            for trace, call, known in zip(traces, pair[:2], origins, strict=True):
                known.update(dict.fromkeys(_made(trace, call), numbers[origin]))
    return origins
