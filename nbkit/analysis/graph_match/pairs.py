"""Pairs: which thing of the left side is which of the right one, with the evidence for it."""

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass
class Pairs:
    """Ids of the left side to those of the right one and back; an id is in at most one pair."""

    right_of: dict[int, int] = field(default_factory=dict)
    left_of: dict[int, int] = field(default_factory=dict)
    evidence: dict[int, str] = field(default_factory=dict)

    def add(self, left: int, right: int, evidence: str) -> bool:
        """Whether they are a pair now: not if one of them has another partner."""
        if left in self.right_of or right in self.left_of:
            return False
        self.right_of[left], self.left_of[right], self.evidence[left] = right, left, evidence
        return True

    def add_all(self, pairs: Iterable[tuple[int, int]], evidence: str) -> list[tuple[int, int]]:
        """Those of them that became pairs."""
        return [pair for pair in pairs if self.add(*pair, evidence)]

    def __len__(self) -> int:
        return len(self.right_of)
