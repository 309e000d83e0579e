"""Matches results whose values prove nothing, or differ, by names and by what stands around them."""

from collections.abc import Hashable, Iterable, Iterator
from functools import partial

import numpy as np

from nbkit.analysis.align.errors import error_in_order
from nbkit.analysis.align.matches import Match, Matches
from nbkit.analysis.align.matching.by_value import same_of
from nbkit.analysis.align.relations import in_order
from nbkit.analysis.align.side import HUGE, Side
from nbkit.analysis.graph_match.pairs import groups, if_single
from nbkit.analysis.graph_match.sequences import follow, pairs_between
from nbkit.ops.kinds import ARITHMETIC
from nbkit.trace.executions.execution import Execution

STATE = ("parameter", "buffer", "input")
# What is masked is so many times as large as the other elements.
BEYOND = 100


def match_names(left: Side, right: Side, matches: Matches) -> None:
    """Adds matches of inputs, parameters and buffers of one kind, name and number of elements, of any values."""
    named = {
        (result.kind, result.name): result.result_id
        for result in right.results
        if result.kind in STATE and result.result_id not in matches.left_of
    }
    for result in left.results:
        partner = named.get((result.kind, result.name))
        if partner is None or result.result_id in matches.right_of or partner in matches.left_of:
            continue
        if left.numel[result.result_id] == right.numel[partner]:
            add_match(left, right, result.result_id, partner, "name", matches)


def match_outputs(left: Side, right: Side, matches: Matches) -> None:
    """Adds matches of outputs in the same place with equal values that are no proof elsewhere, such as losses."""
    for names in output_pairs(left.execution, right.execution):
        first, second = left.execution.outputs[names[0]], right.execution.outputs[names[1]]
        is_new = first not in matches.right_of or second not in matches.left_of
        if is_new and left.numel[first] == right.numel[second]:
            error = error_in_order(left, right, first, second)
            if error is not None and error <= same_of(left, right):
                ours, theirs = left.results[first], right.results[second]
                relation = in_order(ours.shape, theirs.shape, is_cast=ours.dtype != theirs.dtype)
                matches.add(Match(first, second, "name", relation, agrees=True))


def output_pairs(left: Execution, right: Execution) -> list[tuple[str, str]]:
    """Returns the names of outputs in the same place: of one name, else in order, if both return as many.

    Gradients are paired by name alone.
    """
    common = [(name, name) for name in left.outputs if name in right.outputs]
    own = [
        [name for name, number in side.outputs.items() if number not in side.gradients.values()]
        for side in (left, right)
    ]
    if len(own[0]) == len(own[1]) and set(own[0]) != set(own[1]):
        return [*zip(*own, strict=True), *(pair for pair in common if pair[0] not in own[0])]
    return common


def match_neighbours(left: Side, right: Side, matches: Matches) -> None:
    """Adds matches of results with equal values that are no proof (scalars, masks), where all around them says so too.

    They are read at the same place by a pair of the same op, or made by the same op from matched results; and what a
    result only shows in another shape is a pair with that one's partner, too.
    """

    def around(first: int, second: int) -> Iterable[tuple[int, int]]:
        for pair in _behind(left, right, first, second):
            is_free = pair[0] not in matches.right_of or pair[1] not in matches.left_of
            if is_free and _is_equal(left, right, *pair):
                add_match(left, right, *pair, "structure", matches)
                yield pair
        for pair in [*_same_places(left, right, first, second), *_same_readers(left, right, first, second, matches)]:
            if pair[0] in matches.right_of or pair[1] in matches.left_of or not _is_equal(left, right, *pair):
                continue
            add_match(left, right, *pair, "structure", matches)
            yield pair

    follow([(match.left, match.right) for match in matches.all], around)


def _behind(left: Side, right: Side, first: int, second: int) -> Iterator[tuple[int, int]]:
    """Yields a pair with what the one or the other only passes on: an expanded mask, where one side does not expand."""
    if left.is_passing[first] and not right.is_passing[second]:
        yield left.results[first].sources[0], second
    if right.is_passing[second] and not left.is_passing[first]:
        yield first, right.results[second].sources[0]


def _same_places(left: Side, right: Side, first: int, second: int) -> Iterable[tuple[int, int]]:
    """Returns the results that both ops of a pair read at the same place, if they are the same op."""
    ours, theirs = left.results[first], right.results[second]
    if left.does[first] != right.does[second] or len(ours.sources) != len(theirs.sources):
        return []
    return list(zip(ours.sources, theirs.sources, strict=True))


def _same_readers(left: Side, right: Side, first: int, second: int, matches: Matches) -> Iterable[tuple[int, int]]:
    """Returns readers of a pair that do the same, of which there is one on each side."""
    free = [
        [number for number in side.execution.readers[one] if number not in matches.of(which)]
        for which, (side, one) in enumerate(((left, first), (right, second)))
    ]
    return if_single(groups(free[0], free[1], lambda number: left.does[number], lambda number: right.does[number]))


def _is_equal(left: Side, right: Side, first: int, second: int) -> bool:
    """Returns whether two results have the same elements in the same order, as far as is known."""
    if left.numel[first] != right.numel[second]:
        return False
    error = error_in_order(left, right, first, second)
    if error is not None:
        return error <= 1e-6
    if not (left.has_features[first] and right.has_features[second]):
        return False
    return bool(np.allclose(left.moments[first], right.moments[second], rtol=1e-6, atol=1e-12, equal_nan=True))


def add_match(left: Side, right: Side, first: int, second: int, evidence: str, matches: Matches) -> None:
    """Adds a match of two results of one size for reasons other than their values, which say whether they agree."""
    ours, theirs = left.results[first], right.results[second]
    relation = in_order(ours.shape, theirs.shape, is_cast=ours.dtype != theirs.dtype)
    matches.add(Match(first, second, evidence, relation, agrees=_is_equal(left, right, first, second)))


def match_same_calls(left: Side, right: Side, matches: Matches) -> None:
    """Adds matches of what no values pair: calls of one op with the same arguments, that read the same on both sides.

    What such an op gives differs by the op alone, even where it is lost in the noise of what is made of it.
    """
    free: dict[Hashable, list[int]] = {}
    for number in matches.unmatched(1, len(right)):
        result = right.results[number]
        if result.kind == "op" and result.sources and right.is_telling[number]:
            free.setdefault(_call(right, number, result.sources), []).append(number)
    for number in matches.unmatched(0, len(left)):
        result = left.results[number]
        if result.kind != "op" or not result.sources or not left.is_telling[number]:
            continue
        partners = [matches.right_of.get(source) for source in result.sources]
        if any(match is None or not match.agrees for match in partners):
            continue
        others = free.get(_call(left, number, [match.right for match in partners if match is not None]), [])
        if len(others) == 1:
            add_match(left, right, number, others[0], "name", matches)


def _call(side: Side, number: int, sources: Iterable[int]) -> Hashable:
    result = side.results[number]
    return result.op, result.arguments, result.position, result.shape, tuple(sources)


def match_structure(left: Side, right: Side, matches: Matches, differing: tuple[set[int], set[int]]) -> None:
    """Adds matches of results that differ, for want of values by the graph: same op, of matched results, of one size.

    `differing` are those of each side whose values the other one has nowhere, and that lead to no result that agrees.
    """
    _match_named_outputs(left, right, matches, differing)
    _follow(left, right, matches, differing)
    _fill_gaps(left, right, matches, differing)
    _follow(left, right, matches, differing)


def _match_named_outputs(left: Side, right: Side, matches: Matches, differing: tuple[set[int], set[int]]) -> None:
    """Adds matches of outputs that differ and stand in one place, such as the gradients of one parameter."""
    for name, other in output_pairs(left.execution, right.execution):
        first, second = left.execution.outputs[name], right.execution.outputs[other]
        is_free = first not in matches.right_of and second not in matches.left_of
        if is_free and first in differing[0] and second in differing[1] and left.numel[first] == right.numel[second]:
            add_match(left, right, first, second, "name" if name == other else "structure", matches)


def _follow(left: Side, right: Side, matches: Matches, differing: tuple[set[int], set[int]]) -> None:
    """Goes from pair to pair along the dataflow: readers and sources of one pair that do the same are a pair."""

    def around(first: int, second: int) -> Iterable[tuple[int, int]]:
        neighbors = [
            (left.execution.readers[first], right.execution.readers[second]),
            (left.results[first].sources, right.results[second].sources),
        ]
        for ours, theirs in neighbors:
            free = [
                [number for number in dict.fromkeys(numbers) if number in differing[which] and number not in taken]
                for which, (numbers, taken) in enumerate(((ours, matches.right_of), (theirs, matches.left_of)))
            ]
            for form in (_form, _loose_form):
                for pair in if_single(groups(free[0], free[1], partial(form, left), partial(form, right))):
                    if pair[0] not in matches.right_of and pair[1] not in matches.left_of:
                        add_match(left, right, *pair, "structure", matches)
                        yield pair

    follow([(match.left, match.right) for match in matches.all], around)


def _form(side: Side, number: int) -> Hashable:
    result = side.results[number]
    return (side.does[number], result.phase or "forward", tuple(sorted(result.shape)), result.position)


def _loose_form(side: Side, number: int) -> Hashable:
    does = "arithmetic" if side.does[number] in ARITHMETIC else side.does[number]
    return (does, side.results[number].phase or "forward", int(side.numel[number]), _is_masked(side, number))


def _is_masked(side: Side, number: int) -> bool:
    """Returns whether a result has elements that stand for minus infinity: scores are no pair of masked ones."""
    known = side.results[number].features
    if known is None or known.inf_count > 0:
        return known is not None
    return known.min <= -HUGE and -known.min > BEYOND * max(known.max, 1.0)


def _fill_gaps(left: Side, right: Side, matches: Matches, differing: tuple[set[int], set[int]]) -> None:
    """Pairs what differs and does the same in the longest common order, between what is paired already."""
    sides = left, right
    orders = [
        [number for number in canonical_order(side) if number in of_side]
        for side, of_side in zip(sides, differing, strict=True)
    ]
    left_of = {number: match.left for number, match in matches.left_of.items()}
    found = pairs_between(
        (orders[0], orders[1]), matches.right_of, left_of, lambda which, one: _form(sides[which], one)
    )
    for pair in found:
        add_match(left, right, *pair, "structure", matches)


def canonical_order(side: Side) -> list[int]:
    """Returns the results in depth-first post-order from the outputs: the same for graphs emitted in another order."""
    order: list[int] = []
    seen: set[int] = set()
    for root in [*side.execution.outputs.values(), *reversed(range(len(side)))]:
        waiting = [(root, False)]
        while waiting:
            number, is_done = waiting.pop()
            if is_done:
                order.append(number)
            elif number not in seen:
                seen.add(number)
                waiting.append((number, True))
                waiting += [(source, False) for source in reversed(side.results[number].sources) if source not in seen]
    return order
