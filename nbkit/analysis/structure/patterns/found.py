"""Found: one place of a graph where a pattern of dataflow was met."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Found:
    """Nodes that together play a role, what it was told from, and the node that gives their result."""

    role: str
    nodes: frozenset[int]
    evidence: str
    result: int
