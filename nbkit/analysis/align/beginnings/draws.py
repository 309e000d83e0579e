"""Finds random numbers that are other ones: an exporter merges draws, and onnxruntime has no seed of torch's."""

from collections.abc import Mapping

import numpy as np

from nbkit.analysis.align.allowance import region_of
from nbkit.analysis.align.events import Event
from nbkit.analysis.align.matches import Match, Matches
from nbkit.analysis.align.side import Side
from nbkit.ops.kinds import DRAWS, GRADIENT

Draws = tuple[int, ...]


def drawn_events(left: Side, right: Side, matches: Matches) -> list[Event]:
    """Returns a beginning for each draw that stands for two or more ones, else for the first of onnxruntime."""
    sides, drawn = {"left": left, "right": right}, (_draws(left), _draws(right))
    apart = _by_source(left, drawn[0], matches.right_of), _by_source(right, drawn[1], matches.left_of)
    found = []
    for source in [source for source in apart[0] if source in apart[1]]:
        pair = apart[0][source], apart[1][source]
        few, many = ("left", "right") if len(pair[0]) < len(pair[1]) else ("right", "left")
        one, others = sorted(pair, key=len)
        if len(one) == 1 < len(others) and _fans_out(sides[few], one[0]):
            names = " and ".join(sides[many].results[other].name for other in others)
            message = (
                f"{'two' if len(others) == 2 else len(others)} draws became one on the {few} side: all that reads "
                f"{sides[few].results[one[0]].name} has the same random numbers, where the {many} side draws {names}"
            )
            # Just behind what they are for: before all that is made of them.
            order = max(matches.left_of[number].left for number in source) + 0.25
            found.append(Event(None, pair[0][-1:], pair[1][-1:], order, message=message))
    for (name, side), numbers in zip(sides.items(), drawn, strict=True):
        if side.execution.origin == "onnxruntime" and numbers and not found:
            what = side.results[numbers[0]].name
            message = f"the {name} side draws random numbers of its own ({what}): what is made of them cannot agree"
            found.append(Event(None, drawn[0][:1], drawn[1][:1], min(drawn[0], default=0), message=message))
    return found


def _draws(side: Side) -> Draws:
    """Returns the results that are random numbers and lead to outputs; a dropout in eval mode gives what it reads."""
    return tuple(
        number
        for number, does in enumerate(side.does)
        if does.removesuffix(GRADIENT) in DRAWS and side.leads_to_outputs[number] and not side.results[number].position
        if not side.results[number].sources or _is_other(side, number, side.results[number].sources[0])
    )


def _is_other(side: Side, number: int, source: int) -> bool:
    made, read = side.execution.value(number), side.execution.value(source)
    return made is not None and read is not None and not np.array_equal(made, read, equal_nan=True)


def _by_source(side: Side, numbers: Draws, pairs: Mapping[int, Match]) -> dict[frozenset[int], Draws]:
    """Returns draws by the right result_ids of what they are for: what they read, or what first stands beside them."""
    known = {number: match.right for number, match in pairs.items() if match.agrees and match.part is None}
    found: dict[frozenset[int], Draws] = {}
    for number in numbers:
        at, read = number, frozenset[int]()
        while not read:
            region, readers = region_of(side, at, known), side.execution.readers[at]
            read = frozenset(known[one] for one in region if one != at and one in known and side.is_telling[one])
            if len(readers) != 1:
                break
            at = readers[0]
        if read:
            found[read] = (*found.get(read, ()), number)
    return found


def _fans_out(side: Side, number: int) -> bool:
    """Returns whether several ops read a result, or the one result that is made of it."""
    while len(readers := side.execution.readers[number]) == 1:
        number = readers[0]
    return len(readers) > 1
