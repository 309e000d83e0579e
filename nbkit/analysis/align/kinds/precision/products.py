"""Tests whether one side multiplies with factors of fewer bits, as a GPU does with TF32 and a CPU with bfloat16."""

from collections.abc import Iterator
from itertools import product

import numpy as np

from nbkit.analysis.align.align import Alignment
from nbkit.analysis.align.events import Event
from nbkit.analysis.align.kinds.precision.rounding import with_fewer_bits
from nbkit.analysis.align.region import Array, Kind
from nbkit.analysis.align.relations import relative_error
from nbkit.analysis.align.rerun import left_over
from nbkit.analysis.align.side import Side
from nbkit.ops.families import FACTORS
from nbkit.ops.kinds import PRODUCTS
from nbkit.ops.names import bare_name
from nbkit.trace.executions.execution import Result

# Formats by the bits of a float32 that they lack.
FORMATS = {"TF32": 13, "bfloat16": 16}


def reduced_product(alignment: Alignment, event: Event) -> Kind | None:
    """Tests whether a product is the other side's once that one's factors are rounded first.

    The op runs again on its own side; `explained` is what that leaves of the difference. Factors are rounded to the
    nearest or toward zero, as machines differ in that.
    """
    match = event.match
    if match is None or match.relation is None:
        return None
    both = (alignment.left, match.left), (alignment.right, match.right)
    values = [side.execution.value(number) for side, number in both]
    if not all(side.does[number] in PRODUCTS for side, number in both) or values[0] is None or values[1] is None:
        return None
    before = relative_error(*match.relation.views(values[0], values[1]))
    for (side, number), coarse in zip(both, ("right", "left"), strict=True):
        for name, found in _rounded(side, number):
            pair = (found, values[1]) if coarse == "right" else (values[0], found)
            if (rest := left_over(match, *pair, before)) is not None:
                message = f"The {coarse} one rounds what it multiplies to {name}: with that, they agree."
                return Kind("accumulation_dtype", message, rest)
    return None


def _rounded(side: Side, number: int) -> Iterator[tuple[str, Array]]:
    """Yields names of formats and what the op gives with its factors in them."""
    recompute, factors = side.execution.recompute, _factors(side.results[number])
    values = {one: side.execution.value(one) for one in factors}
    if recompute is None or any(value is None or value.dtype != np.float32 for value in values.values()):
        return
    for (name, bits), to_nearest in product(FORMATS.items(), (True, False)):
        less: dict[int, Array] = {
            one: with_fewer_bits(value, bits, to_nearest=to_nearest)
            for one, value in values.items()
            if value is not None
        }
        found = recompute(less, [number])
        if number in found:
            yield name, found[number]


def _factors(result: Result) -> tuple[int, ...]:
    """Returns what an op multiplies: some of torch's, such as addmm, have first what they add, all others last."""
    first = FACTORS.get(bare_name(result.op), (0, 1))[0]
    return result.sources[first : first + 2]
