"""Computes what the right execution gives with parameters of the left one, and counts what the left one has, too."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from nbkit.analysis.align.copying.known import KnownValues
from nbkit.analysis.align.copying.layouts import Option
from nbkit.analysis.align.copying.uses import Uses
from nbkit.trace.executions.execution import Array

# Of left parameters, without the numbers of layers.
Names = tuple[str, ...]


@dataclass
class Placement:
    """Holds one way to place parameters, as far as it has got.

    `done` have a bit for each parameter of a side that is placed or has no place; `values` are of the right results
    that are still to be read; `proved` has a bit for each right parameter that led to values of the left execution,
    `doubted` for each for which another value does as well. `rank` is lowest where the most results are the left one's:
    minus their number, then that of those made of its values. `learned` are pairs of names without the numbers of
    layers, with how far these are apart, and `layouts` those of right names. `is_forced` says that right results are
    not the left one's any more, `is_skewed` that one side has something that the other one has not.
    """

    placed: dict[int, Option] = field(default_factory=dict)
    done: tuple[int, int] = (0, 0)
    taken: dict[tuple[int, str], list[Option]] = field(default_factory=dict)
    values: dict[int, Array] = field(default_factory=dict)
    known: frozenset[int] = frozenset()  # right results that the left one has
    rank: tuple[int, int] = (0, 0)
    cost: float = 0.0
    proved: int = 0
    doubted: int = 0
    learned: Mapping[tuple[str, Names], frozenset[tuple[int, ...]]] = field(default_factory=dict)
    layouts: frozenset[tuple[str, tuple[str, int]]] = frozenset()
    is_forced: bool = False
    is_skewed: bool = False


@dataclass(frozen=True)
class Outcome:
    """Says which right results a trial computed that the left one has, and whether one of them is read further on."""

    found: frozenset[int]
    values: Mapping[int, Array]
    reaches: bool


class Trials:
    """Runs the right execution again on options for its parameters."""

    def __init__(self, right: Uses, known: KnownValues) -> None:
        self.right, self.known = right, known
        self.returned = set(right.execution.outputs.values())

    def run(
        self, placement: Placement, options: Mapping[int, Option], forced: Mapping[int, Array], *, more: int = 0
    ) -> Outcome:
        """Returns what becomes computable with options for some parameters, by number.

        `forced` are values that are read in place of those computed so far; `more` has a bit for each parameter that
        keeps its own values.
        """
        run = self.right.execution.recompute
        before = placement.done[1]
        after = before | mask_of(options) | more
        new = self.right.new_results(before, after)
        if run is None or not new:
            return Outcome(frozenset(), {}, False)
        replaced = {**placement.values, **forced}
        for number, option in {**placement.placed, **options}.items():
            replaced[self.right.states[number]] = option.value
        wanted = [number for number in new if self.right.side.eps[number] > 0 or self.is_read_later(number, after)]
        values = run(replaced, wanted)
        found = frozenset(number for number, value in values.items() if self.known.has(value))
        later = {number: value for number, value in values.items() if self.is_read_later(number, after)}
        reaches = any(number in found for number in later) or not found.isdisjoint(self.returned)
        return Outcome(found, later, reaches)

    def is_read_later(self, number: int, after: int) -> bool:
        """Returns whether a result is read by one that is made of other parameters, too."""
        readers = self.right.execution.readers[number]
        return any(self.right.made_of[reader] & ~after for reader in readers)


def mask_of(numbers: Iterable[int]) -> int:
    """Returns the numbers as bits."""
    mask = 0
    for number in numbers:
        mask |= 1 << number
    return mask
