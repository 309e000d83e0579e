"""Finds the residual stream: additions of a branch to what the branch was computed from, one after the other."""

from collections.abc import Set
from dataclasses import dataclass

from nbkit.analysis.structure.flow import Flow
from nbkit.analysis.structure.patterns.pattern_match import PatternMatch
from nbkit.ops.kinds import PARTS
from nbkit.step.reachable import reachable


@dataclass(frozen=True)
class Addition:
    """One addition to the stream: its node, the node that made what is passed on, and the branch's result."""

    node: int
    skip: int
    branch: int


def streams(flow: Flow, norms: list[PatternMatch]) -> list[list[Addition]]:
    """Returns the residual streams of a graph, each as its additions in order; of branches inside of branches none."""
    additions: dict[int, Addition] = {}
    for node in flow.order:
        found = _addition if flow.does[node] == "add" else _fused if node in flow.addends else None
        if found and (addition := found(flow, node, additions)):
            additions[node] = addition
    past = _PastNorms(flow, norms)
    depth: dict[int, int] = {}
    root: dict[int, int] = {}
    for node, addition in additions.items():
        before = past(addition.skip)
        depth[node] = depth.get(before, 0) + 1
        root[node] = root.get(before, before)
    ends: dict[int, int] = {}
    for node in additions:
        best = ends.get(root[node])
        if best is None or depth[node] >= depth[best]:
            ends[root[node]] = node
    chains = [_chain(additions, end, past) for end in ends.values()]
    return [chain for chain in chains if len(chain) > 1]


def branch_nodes(flow: Flow, addition: Addition) -> set[int]:
    """Returns the nodes of a branch: what its result goes back to, as far as that depends on what is passed on."""
    inside = flow.between(addition.skip, addition.branch)
    result = set[int]()
    for node in sorted(inside, key=flow.rank.__getitem__):
        if any(src == addition.skip or src in result for src in flow.reads[node]):
            result.add(node)
    return result


def _addition(flow: Flow, node: int, known: dict[int, Addition]) -> Addition | None:
    moving = flow.moving[node]
    if len(moving) != 2 or len({str(flow.shapes[at]) for at in (node, *moving)} - {"None"}) > 1:
        return None
    first, second = sorted(moving, key=lambda at: flow.rank[flow.origin(at)])
    skip, branch = flow.origin(first), flow.origin(second)
    return Addition(node, skip, second) if _comes_from(flow, branch, skip, known) else None


def _fused(flow: Flow, node: int, known: dict[int, Addition]) -> Addition | None:
    """Returns the addition that a projection does as well, to its own result: the branch ends in the node itself."""
    addend = flow.addends[node]
    skip = flow.origin(addend)
    if node not in flow.projections or flow.shapes[node] != flow.shapes[addend]:
        return None
    others = [src for src in flow.moving[node] if src != addend]
    is_branch = any(flow.origin(src) == skip or _comes_from(flow, src, skip, known, {node}) for src in others)
    return Addition(node, skip, node) if is_branch else None


def _comes_from(flow: Flow, branch: int, skip: int, known: dict[int, Addition], after: Set[int] = frozenset()) -> bool:
    """Returns whether a branch comes from `skip` with a projection on the way, which x + x ** 3 in a GELU has not.

    `after` are nodes behind the branch.
    """

    def older(node: int) -> list[int]:
        # What a known addition passes on is older than its branch, and a projection was on the way.
        reads = [known[node].skip] if node in known else flow.reads[node] if node != skip else []
        return [src for src in reads if flow.rank[src] >= flow.rank[skip]]

    met = set(reachable([branch] if flow.rank[branch] >= flow.rank[skip] else [], older))
    return skip in met and any(node in known or (node != skip and node in flow.projections) for node in met | after)


class _PastNorms:
    """Finds the node that made a value, past norms: what a norm after an addition passes on is the stream, too."""

    def __init__(self, flow: Flow, norms: list[PatternMatch]) -> None:
        self._inputs: dict[int, int] = {}
        for norm in norms:
            outside = [src for at in norm.nodes for src in flow.moving[at] if src not in norm.nodes]
            if outside:
                self._inputs[norm.result] = flow.origin(outside[0])
        self._flow = flow

    def __call__(self, node: int) -> int:
        while node in self._inputs or self._flow.does[node] in PARTS:
            moving = self._flow.moving[node]
            if node not in self._inputs and not moving:
                break
            node = self._inputs[node] if node in self._inputs else self._flow.origin(moving[0])
        return node


def _chain(additions: dict[int, Addition], end: int, past: _PastNorms) -> list[Addition]:
    chain: list[Addition] = []
    node = end
    while node in additions:
        chain.append(additions[node])
        node = past(additions[node].skip)
    return chain[::-1]
