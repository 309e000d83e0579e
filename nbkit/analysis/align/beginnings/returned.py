"""Compares outputs with outputs: those that were recorded, and those that a call without a recorder returns."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from nbkit.analysis.align.allowance import is_noise, rounded
from nbkit.analysis.align.errors import error_in_order, error_of
from nbkit.analysis.align.events import Event
from nbkit.analysis.align.matches import Match, Matches
from nbkit.analysis.align.matching.by_context import output_pairs
from nbkit.analysis.align.matching.by_value import same_of, tolerance_of
from nbkit.analysis.align.relations import Array, in_order, relative_error
from nbkit.analysis.align.side import Side
from nbkit.numerics.precision import precision_of
from nbkit.trace.executions.execution import Execution, Result, Returned
from nbkit.trace.executions.features import features_of
from nbkit.units import general

# Calls that differ by this part of their difference from what was recorded differ each time.
VARIES = 0.25
# The median element differs by so many times as much as a rounding of all that was given, where rounding has grown.
GROWN = 8.0
VARYING = "Each call returns other values, so that what a call without a recording returns was not compared."


def with_returned(left: Execution, right: Execution) -> tuple[Side, Side]:
    """Returns both sides, with results more for outputs that a call without a recorder returns otherwise on a side.

    They stand behind the recorded outputs, on both sides, and are the outputs in their place.
    """
    sides = Side(left), Side(right)
    same = same_of(*sides)
    others = [_others(side, same) for side in sides]
    names = [pair for pair in output_pairs(left, right) if pair[0] in others[0] or pair[1] in others[1]]
    if not any(side.returned for side in (left, right)):
        return sides
    found = [_extended(side, others[which], [pair[which] for pair in names]) for which, side in enumerate(sides)]
    return Side(found[0]), Side(found[1])


def _others(side: Side, same: float) -> dict[str, Returned]:
    """Returns what a call returns otherwise, beyond rounding; nothing where each call returns something else."""
    found = {}
    for name, returned in side.execution.returned.items():
        number = side.execution.outputs[name]
        recorded = side.execution.value(number)
        if recorded is None:
            continue
        error = relative_error(recorded, returned.value)
        varies = np.inf if returned.again is None else relative_error(returned.value, returned.again)
        if error > same and varies < VARIES * error and not _is_grown(side, number, error):
            found[name] = returned
    return found


def _varies(execution: Execution) -> bool:
    pairs = [(one.value, one.again) for one in execution.returned.values()]
    return any(again is None or relative_error(value, again) > 0 for value, again in pairs)


def _extended(side: Side, others: Mapping[str, Returned], names: Sequence[str]) -> Execution:
    run = side.execution
    results, outputs, recompute = [*run.results], dict(run.outputs), run.recompute
    own: dict[int, Array] = {}
    for name in names:
        source = run.results[run.outputs[name]]
        value = others[name].value if name in others else run.value(source.result_id)
        if value is None:
            continue
        how = others[name].how if name in others else "recorded"
        number = outputs[name] = len(results)
        shape = tuple(value.shape)
        results.append(
            Result(number, "op", f"output {name}", source.dtype, shape, sources=(source.result_id,), op=how,
                   features=features_of(value))
        )  # fmt: skip
        run.values.put(number, value)
        own[number] = value

    def again(replaced: Mapping[int, Array], wanted: Sequence[int]) -> Mapping[int, Array]:
        assert recompute is not None
        rest = {number: value for number, value in replaced.items() if number not in own}
        found = recompute(rest, [number for number in wanted if number not in own])
        return {**found, **{number: own[number] for number in wanted if number in own}}

    notes = (*run.notes, VARYING) if not others and _varies(run) else run.notes
    return replace(
        run, results=tuple(results), outputs=outputs, recompute=recompute and again, notes=notes, returned={}
    )


def _is_grown(side: Side, number: int, error: float) -> bool:
    """Returns whether a rounding of all that the run was given changes its elements as much.

    The median element tells: where a rounding makes single elements jump, such as floor() of what is nearly 1, the
    others stay as they are, and those that jump are no rounding.
    """
    value, recompute = side.execution.value(number), side.execution.recompute
    if value is None or recompute is None or value.dtype.kind != "f":
        return False
    given = {
        result.result_id: rounded(known, side.eps[result.result_id], result.result_id)
        for result in side.results
        if result.kind != "op" and (known := side.execution.value(result.result_id)) is not None
    }
    changed = recompute(given, [number]).get(number)
    if changed is None:
        return False
    difference = np.abs(changed.astype(np.float64) - value.astype(np.float64))
    scale = float(np.sqrt(np.mean(np.square(value, dtype=np.float64))))
    return error <= GROWN * float(np.median(difference)) / (scale or 1.0)


def is_returned(side: Side, number: int) -> bool:
    """Returns whether a result is what a call returns, and no recorded one."""
    result = side.results[number]
    return result.kind == "op" and result.call is None and side.execution.origin != "trace"


def match_returned(left: Side, right: Side, matches: Matches) -> None:
    """Adds matches of what calls return."""
    for first, second in output_numbers(left, right):
        if is_returned(left, first):
            error = error_in_order(left, right, first, second)
            matches.add(_match(left, right, first, second, agrees=error is not None and error <= same_of(left, right)))


def output_numbers(left: Side, right: Side) -> Iterator[tuple[int, int]]:
    """Yields the results that both sides return in the same place."""
    is_more = len(left.execution.outputs) != len(right.execution.outputs)
    for first, second in output_pairs(left.execution, right.execution):
        # What one side returns in addition moves the others to other places.
        if is_more and first.startswith("["):
            continue
        yield left.execution.outputs[first], right.execution.outputs[second]


def _match(left: Side, right: Side, first: int, second: int, *, agrees: bool) -> Match:
    ours, theirs = left.results[first], right.results[second]
    is_as_large = left.numel[first] == right.numel[second]
    relation = in_order(ours.shape, theirs.shape, is_cast=ours.dtype != theirs.dtype) if is_as_large else None
    return Match(first, second, "name", relation, agrees=agrees)


def mistaken_outputs(left: Side, right: Side, matches: Matches) -> list[Match]:
    """Returns matches by value that share a partner, of outputs whose own partner has other values.

    So it is where (x + 1000) - 1000 is x on one side, and not on the other one.
    """
    found, same, (of_left, of_right) = [], same_of(left, right), matches.groups()
    for first, second in output_numbers(left, right):
        error = error_in_order(left, right, first, second) if left.numel[first] == right.numel[second] else None
        if error is None or error <= same:
            continue
        mine = [*of_left.get(first, ()), *of_right.get(second, ())]
        if all((match.left, match.right) != (first, second) for match in mine):
            found += [
                match
                for match in mine
                if matches.right_of[match.left] is not match or matches.left_of[match.right] is not match
            ]
    return found


def told(left: Side, right: Side, event: Event) -> Event:
    """Returns a beginning at what a call returns with what there is to say of it; others as they are."""
    match = event.match
    if match is None or not (is_returned(left, match.left) and is_returned(right, match.right)):
        return event
    sides = {"left": left.results[match.left], "right": right.results[match.right]}
    calls = {name: result for name, result in sides.items() if result.op != "recorded"}
    what = " and ".join(f"the {result.op} call of the {name} side" for name, result in calls.items())
    how = "uncompiled" if any(result.op == "compiled" for result in calls.values()) else "under a recorder"
    message = (
        f"the outputs differ by {_difference(left, right, match)}; that is what {what} returns, and its ops were "
        f"recorded {how}, so that where inside it begins does not show"
    )
    ends = [(number,) if name in calls else () for name, number in (("left", match.left), ("right", match.right))]
    return replace(event, left=ends[0], right=ends[1], message=message)


def output_events(left: Side, right: Side, matches: Matches) -> list[Event]:
    """Returns a beginning for each pair of outputs that differ, where no op says where they begin to."""
    wide = [name for name, side in (("left", left), ("right", right)) if _is_wide_inside(side)]
    least = same_of(left, right) if wide else tolerance_of(left, right)
    why = "".join(f"; the {name} side computes float16 in float32 (onnxruntime's CPU provider)" for name in wide)
    found, (of_left, _) = [], matches.groups()
    for first, second in output_numbers(left, right):
        error = error_in_order(left, right, first, second) if left.numel[first] == right.numel[second] else None
        pairs = [match for match in of_left.get(first, ()) if match.right == second]
        is_same = any(match.agrees and (not wide or (match.relation and match.relation.axes)) for match in pairs)
        if error is None or error <= least or is_same or _is_grown(right, second, error):
            continue
        if not wide and (is_noise(left, first, matches.right_of) or is_noise(right, second, matches.left_of)):
            continue
        match = _match(left, right, first, second, agrees=False)
        matches.remove(pairs)
        matches.add(match)
        of_left[first] = [match, *(one for one in of_left.get(first, ()) if one not in pairs)]
        message = f"the outputs differ by {_difference(left, right, match)}{why}"
        found.append(Event(match, (first,), (second,), first, message=message))
    return found


def _is_wide_inside(side: Side) -> bool:
    """Returns whether a float16 result of onnxruntime is none that its op gives for the float16 numbers that it reads.

    Its CPU provider has no kernels for most ops in float16: it casts chains of them to float32, and rounds at the end.
    """
    recompute, eps = side.execution.recompute, precision_of("float16")
    results = [result.result_id for result in side.results if result.kind == "op" and result.dtype == "float16"]
    if side.execution.origin != "onnxruntime" or recompute is None or not results or eps is None:
        return False
    own = {number: value for number in results if (value := side.execution.value(number)) is not None}
    alone = recompute(own, [*own])
    return any(relative_error(own[number], value) > eps.eps for number, value in alone.items())


def _difference(left: Side, right: Side, match: Match) -> str:
    values = left.execution.value(match.left), right.execution.value(match.right)
    error = error_of(left, right, match)
    if values[0] is None or values[1] is None or error is None or match.relation is None:
        return "their sizes"
    with np.errstate(all="ignore"):
        ours, theirs = match.relation.views(values[0], values[1])
        largest = float(np.nanmax(np.abs(np.subtract(ours, theirs, dtype=np.float64)), initial=0.0))
    size = f" (relative error {error:.2g})" if np.isfinite(error) else " (NaN, Inf or zeros)"
    return f"up to {general(largest, 3)}{size}"
