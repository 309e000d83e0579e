"""Finds a smallest set that passes a test: by prefixes of an order, and by delta debugging where that does not do."""

from collections.abc import Callable, Sequence
from itertools import accumulate
from math import ceil, log2
from typing import Any

Unit = Any
Test = Callable[[frozenset[Unit]], bool]
# So many prefixes are tried from the front, doubling, before the rest is halved: culprits often stand there.
GALLOPS = 2


def smallest_set(
    groups: Sequence[Sequence[Unit]], passes: Test, seeks: Callable[[int, int], None] = lambda number, most: None
) -> list[Unit]:
    """Returns a set that passes and of which every unit is needed, in the order in which they were found.

    All units together are known to pass, none is known to fail. If what holds a passing set passes, too, it takes
    log2(n) + 7 tests or fewer for each unit that is found: the last one of the shortest prefix of the order that passes
    is needed, and with it in the set the prefix before it is searched for the others. Ends of groups are tried first,
    then the units inside one. Where a unit that was found turns out not to be needed, the test is not so, and the set
    is made smaller by delta debugging: A. Zeller, R. Hildebrandt, Simplifying and Isolating Failure-Inducing Input,
    IEEE TSE 28(2), 2002.

    `seeks` is told which unit is looked for, from 1 on, and how many tests there are at the most if that is the last.
    """
    order = [unit for group in groups for unit in group]
    ends = [*accumulate(map(len, groups))]
    found: list[Unit] = []
    stop = len(order)
    while not passes(frozenset(found)):

        def fits(length: int) -> bool:
            return passes(frozenset((*found, *order[:length])))

        number = len(found) + 1
        seeks(number, ceil(log2(max(stop, 2))) + 7 + (number if number > 1 else 0))
        whole = [end for end in ends if end < stop]
        length = _first([*whole, stop], fits)
        start = max((end for end in whole if end < length), default=0)
        length = _first(range(start + 1, length + 1), fits)
        found.append(order[length - 1])
        stop = length - 1
    is_minimal = len(found) == 1 or not any(passes(frozenset(found) - {unit}) for unit in found)
    return found if is_minimal else delta_debugged(found, passes)


def _first(lengths: Sequence[int], fits: Callable[[int], bool]) -> int:
    """Returns the first length that fits, of which the last is known to do."""
    low, high = 0, len(lengths) - 1  # what is sought is in low..high
    for step in (1 << number for number in range(GALLOPS)):
        if step > high:
            break
        if fits(lengths[step - 1]):
            high = step - 1
            break
        low = step
    while low < high:
        middle = (low + high) // 2
        if fits(lengths[middle]):
            high = middle
        else:
            low = middle + 1
    return lengths[low]


def delta_debugged(units: Sequence[Unit], passes: Test) -> list[Unit]:
    """Returns a part of `units`, which pass, that passes and of which no single unit can be left out."""
    units, count = list(units), 2
    while len(units) > 1:
        size = -(-len(units) // count)
        parts = [units[start : start + size] for start in range(0, len(units), size)]
        part = next((one for one in parts if passes(frozenset(one))), None)
        if part is not None:
            units, count = part, 2
            continue
        rests = ([unit for unit in units if unit not in one] for one in parts)
        rest = next((one for one in rests if passes(frozenset(one))), None) if len(parts) > 2 else None
        if rest is not None:
            units, count = rest, max(count - 1, 2)
        elif count < len(units):
            count = min(2 * count, len(units))
        else:
            break
    return units
