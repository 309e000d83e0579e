"""Graph holds one graph while its structure is recognized, and what its dataflow says."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from nbkit.analysis.structure.flow import Flow
from nbkit.analysis.structure.patterns import PatternMatch, patterns_in
from nbkit.analysis.structure.patterns.residual import Addition, streams
from nbkit.analysis.structure.tree import Location
from nbkit.step.nodes import Nodes

TREE = "module tree"
# Phases whose nodes are no part of the forward.
LATE = ("backward", "optimizer", "recompute", "other")


@dataclass
class Graph:
    """Holds nodes of one graph by their position in the source; its lists have an entry for each position there.

    `locations` is filled as they are found, and of each `claims` (role and evidence) and `modules_at` (module path).
    """

    name: str
    rows: list[int]
    source: Nodes
    phases: list[str | None]
    regions: list[str]
    types: Mapping[str, str]
    locations: list[Location]
    claims: dict[Location, tuple[str, str]] = field(default_factory=dict)
    modules_at: dict[Location, str] = field(default_factory=dict)

    @cached_property
    def is_tree(self) -> bool:
        """Returns whether it is a module tree, which has no dataflow."""
        return self.name == TREE

    @cached_property
    def is_flat(self) -> bool:
        """Returns whether no op of it has a module path."""
        return not self.is_tree and not any(
            self.source.modules[row] for row in self.rows if self.source.kinds[row] == "op"
        )

    @cached_property
    def is_split(self) -> bool:
        """Returns whether its phases are told apart."""
        return any(self.regions[row] for row in self.rows)

    @cached_property
    def root(self) -> str | None:
        """Returns what the root module is called; None if none is known."""
        has_root = any(self.source.modules[row] == "" for row in self.rows)
        return (self.types.get("") or self.name) if has_root else None

    @cached_property
    def flow(self) -> Flow:
        """Returns all its nodes."""
        return Flow(self.source, self.rows)

    @cached_property
    def forward(self) -> Flow:
        """Returns the nodes of its forward, and those that no phase has: parameters, inputs."""
        if not self.is_split:
            return self.flow
        kinds = self.source.kinds
        return Flow(
            self.source, [row for row in self.rows if self.phases[row] not in LATE or kinds[row] == "parameter"]
        )

    @cached_property
    def in_order(self) -> list[int]:
        """Returns its nodes, computing ones first in the order in which they run, so that parts stand in that order."""
        if self.is_tree:
            return self.rows
        kinds, is_held = self.flow.kinds, self.flow.is_held
        return sorted(self.flow.order, key=lambda node: kinds[node] != "op" or is_held[node])

    @cached_property
    def matches(self) -> list[PatternMatch]:
        """Returns the patterns in the dataflow of its forward."""
        return [] if self.is_tree else patterns_in(self.forward)

    @cached_property
    def streams(self) -> list[list[Addition]]:
        """Returns the residual streams of its forward."""
        return [] if self.is_tree else streams(self.forward, [match for match in self.matches if match.role == "norm"])
