"""Says of each result that differs where its difference began."""

from collections.abc import Mapping
from dataclasses import dataclass

from nbkit.analysis.align.align import Alignment
from nbkit.analysis.align.events import Event
from nbkit.analysis.align.first_divergence import message_of
from nbkit.analysis.align.side import Side


@dataclass(frozen=True)
class Origins:
    """Holds the number of the event by result_id of each side, the results at which one begins, and the sentences."""

    left: dict[int, int]
    right: dict[int, int]
    first: tuple[frozenset[int], frozenset[int]]
    messages: tuple[str, ...]

    def of(self, left: int | None, right: int | None) -> int | None:
        """Returns the number of the event that a row goes back to; null where there is none."""
        found = self.left.get(left) if left is not None else None
        return self.right.get(right) if found is None and right is not None else found

    def begins(self, left: int | None, right: int | None) -> bool:
        """Returns whether a row of one side alone is where an event begins."""
        return left in self.first[0] if left is not None else right in self.first[1]


def origins_of(alignment: Alignment) -> Origins:
    """Returns the origins of all results that differ: of those inside an event, and of all that is made of them."""
    sides = [
        _spread(side, [event.left if which == 0 else event.right for event in alignment.events], differing, known)
        for which, (side, differing, known) in enumerate(
            zip((alignment.left, alignment.right), alignment.differing, alignment.origins, strict=True)
        )
    ]
    lone = [event for event in alignment.events if event.match is None]
    first = (
        frozenset(event.left[0] for event in lone if event.left),
        frozenset(event.right[0] for event in lone if event.right),
    )
    return Origins(sides[0], sides[1], first, tuple(_sentence(alignment, event) for event in alignment.events))


def _spread(side: Side, inside: list[tuple[int, ...]], differing: set[int], known: Mapping[int, int]) -> dict[int, int]:
    origin = dict(known)
    for number, members in enumerate(inside):
        for member in members:
            origin.setdefault(member, number)
    for result in side.results:
        if result.result_id in origin or result.result_id not in differing:
            continue
        read = [origin[source] for source in result.sources if source in origin]
        if read:
            origin[result.result_id] = min(read)
    return origin


def _sentence(alignment: Alignment, event: Event) -> str:
    return message_of(alignment, event, None)
