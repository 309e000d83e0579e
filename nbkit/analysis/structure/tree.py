"""PartTree holds the parts of a trace's graphs while they are recognized, each below the part that holds it."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from nbkit.schema import PARTS

Location = tuple[str, ...]


@dataclass
class Part:
    """One part as far as it is known; `location` is its names from the top of its graph down to its own."""

    graph: str
    location: Location
    parent: int | None
    module: str | None = None
    type: str | None = None
    phase: str | None = None
    role: str | None = None
    evidence: str | None = None
    number: int | None = None
    repeat_of: int | None = None
    params: int | None = None

    @property
    def name(self) -> str:
        return self.location[-1]

    def claim(self, role: str, evidence: str) -> None:
        """Gives it this role, unless it has one."""
        if self.role is None:
            self.role, self.evidence = role, evidence


class PartTree:
    """Holds parts in the order in which they were first asked for; parents come before their children."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self._locations: dict[tuple[str, Location], int] = {}

    def at(self, graph: str, location: Location) -> int:
        """Returns index of the part at this location, which is made with those above it if it is not there."""
        result = self._locations.get((graph, location))
        if result is not None:
            return result
        parent = self.at(graph, location[:-1]) if len(location) > 1 else None
        self.parts.append(Part(graph, location, parent))
        self._locations[graph, location] = len(self.parts) - 1
        return len(self.parts) - 1

    def children(self) -> list[list[int]]:
        """Returns for each part the parts right below it, in their order."""
        below: list[list[int]] = [[] for _ in self.parts]
        for index, part in enumerate(self.parts):
            if part.parent is not None:
                below[part.parent].append(index)
        return below

    def totals(self, own: Sequence[int]) -> list[int]:
        """Sums for each part its own number and those of all parts below it."""
        sums = list(own)
        for index in reversed(range(len(sums))):
            parent = self.parts[index].parent
            if parent is not None:
                sums[parent] += sums[index]
        return sums

    def frame(self, own_nodes: Sequence[int]) -> pd.DataFrame:
        """Returns the frame `parts`; `own_nodes` is of each part its direct nodes."""
        columns = ("graph", "name", "module", "type", "phase", "role", "number", "repeat_of", "params", "evidence")
        data = {name: [getattr(part, name) for part in self.parts] for name in columns}
        data |= {"part_id": list(range(len(self.parts))), "parent_id": [part.parent for part in self.parts]}
        return PARTS.frame(data | {"nodes": self.totals(own_nodes)})
