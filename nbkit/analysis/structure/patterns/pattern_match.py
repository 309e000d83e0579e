"""PatternMatch holds nodes of a graph in which a pattern of dataflow was recognized."""

from dataclasses import dataclass


@dataclass(frozen=True)
class PatternMatch:
    """Holds nodes that play a role together, the evidence for it, and the node that gives their result."""

    role: str
    nodes: frozenset[int]
    evidence: str
    result: int
