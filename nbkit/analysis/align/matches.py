"""Matches holds the pairs of results that were found so far, with relation and evidence; a result may be in several."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from nbkit.analysis.align.relations import Relation


@dataclass(frozen=True)
class Match:
    """Holds a pair of result_ids; `agrees` says whether their values are the same within the noise.

    `relation` is null where one side holds a part of the other one: `part` then names it, slice or concat. It is
    null, too, where no order of axes leads from one to the other: the same rows in another order, another size.
    """

    left: int
    right: int
    evidence: str
    relation: Relation | None
    agrees: bool
    part: str | None = None


@dataclass
class Matches:
    """Holds all matches in the order in which they were found.

    `right_of` and `left_of` have the first match of each result, which is its partner; later ones share a result that
    has a partner already, such as a view more on one side.
    """

    all: list[Match] = field(default_factory=list)
    right_of: dict[int, Match] = field(default_factory=dict)
    left_of: dict[int, Match] = field(default_factory=dict)

    def add(self, match: Match) -> None:
        """Adds a match."""
        self.all.append(match)
        self.right_of.setdefault(match.left, match)
        self.left_of.setdefault(match.right, match)

    def of(self, side: int) -> dict[int, Match]:
        """Returns the partners of one side's results: 0 is left."""
        return self.left_of if side else self.right_of

    def replace(self, changed: Iterable[tuple[Match, Match]]) -> None:
        """Puts matches in the place of others of the same results."""
        new = {id(before): after for before, after in changed}
        self.all = [new.get(id(match), match) for match in self.all]
        for known in (self.right_of, self.left_of):
            known.update({number: new[id(match)] for number, match in known.items() if id(match) in new})

    def remove(self, gone: Iterable[Match]) -> None:
        """Takes matches out."""
        ids = {id(match) for match in gone}
        if not ids:
            return
        kept = [match for match in self.all if id(match) not in ids]
        self.all, self.right_of, self.left_of = [], {}, {}
        for match in kept:
            self.add(match)

    def groups(self) -> tuple[dict[int, list[Match]], dict[int, list[Match]]]:
        """Returns all matches of each result of the left side, and of the right one."""
        found: tuple[dict[int, list[Match]], dict[int, list[Match]]] = {}, {}
        for match in self.all:
            found[0].setdefault(match.left, []).append(match)
            found[1].setdefault(match.right, []).append(match)
        return found

    def partner(self, side: int, number: int) -> int | None:
        """Returns the partner's result_id; null without one."""
        match = self.of(side).get(number)
        return None if match is None else match.left if side else match.right

    def unmatched(self, side: int, size: int) -> Iterator[int]:
        """Yields the results of a side without a partner."""
        taken = self.of(side)
        return (number for number in range(size) if number not in taken)
