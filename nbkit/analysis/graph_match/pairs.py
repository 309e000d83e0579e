"""Pairs of things of two sides, with their evidence, and the passes that find them: one key after the other."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

Thing = TypeVar("Thing")
# What a thing is looked up by in one pass; a thing with a null key takes no part in it.
Key = Callable[[Thing], Hashable | None]
Groups = Iterable[tuple[list[Thing], list[Thing]]]


@dataclass
class Pairs:
    """Maps ids of the left side to those of the right one and back; an id is in at most one pair."""

    right_of: dict[int, int] = field(default_factory=dict)
    left_of: dict[int, int] = field(default_factory=dict)
    evidence: dict[int, str] = field(default_factory=dict)

    def add(self, left: int, right: int, evidence: str) -> bool:
        """Returns whether they are a pair now: not if one of them has another partner."""
        if left in self.right_of or right in self.left_of:
            return False
        self.right_of[left], self.left_of[right], self.evidence[left] = right, left, evidence
        return True

    def add_all(self, pairs: Iterable[tuple[int, int]], evidence: str) -> list[tuple[int, int]]:
        """Returns those of them that became pairs."""
        return [pair for pair in pairs if self.add(*pair, evidence)]


def groups(
    lefts: Sequence[Thing], rights: Sequence[Thing], left_key: Key[Thing], right_key: Key[Thing]
) -> Groups[Thing]:
    """Returns things of equal keys, of both sides; in the order of the left ones."""
    right_groups = _by_key(rights, right_key)
    return [(firsts, right_groups[name]) for name, firsts in _by_key(lefts, left_key).items() if name in right_groups]


def in_order(candidates: Groups[Thing]) -> list[tuple[Thing, Thing]]:
    """Returns the first of a group with the first, the second with the second; what is left over stays unpaired."""
    return [pair for firsts, seconds in candidates for pair in zip(firsts, seconds, strict=False)]


def if_as_many(candidates: Groups[Thing]) -> list[tuple[Thing, Thing]]:
    """Returns the same, only of groups that both sides have equally many of."""
    return in_order((firsts, seconds) for firsts, seconds in candidates if len(firsts) == len(seconds))


def if_single(candidates: Groups[Thing]) -> list[tuple[Thing, Thing]]:
    """Returns the same, only of groups of one on each side."""
    return in_order((firsts, seconds) for firsts, seconds in candidates if len(firsts) == len(seconds) == 1)


def _by_key(things: Sequence[Thing], key: Key[Thing]) -> dict[Hashable, list[Thing]]:
    result: dict[Hashable, list[Thing]] = {}
    for thing in things:
        if (name := key(thing)) is not None:
            result.setdefault(name, []).append(thing)
    return result
