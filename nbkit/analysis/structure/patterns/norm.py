"""Finds norms: an op that is one, or x times the reciprocal root of its mean square."""

from nbkit.analysis.structure.flow import Flow
from nbkit.analysis.structure.patterns.pattern_match import PatternMatch
from nbkit.ops.kinds import NORMS, SQUARES


def norms(flow: Flow) -> list[PatternMatch]:
    """Returns every norm of a graph, fused or written out, with its weight and bias."""
    result = []
    for node in flow.order:
        if flow.does[node] in NORMS and flow.reads[node]:
            result.append(PatternMatch("norm", frozenset({node}), f"{flow.op(node)} op", node))
        elif flow.does[node] in ("rsqrt", "sqrt") and (norm := _written_out(flow, node)):
            result.append(norm)
    return result


def _written_out(flow: Flow, root: int) -> PatternMatch | None:
    """Returns the norm around a square root, if any: the mean of squares below, the product with the input above."""
    mean = _above(flow, root)
    if mean is None or flow.does[mean] != "mean":
        return None
    squares = flow.origins(mean)
    if len(squares) != 1 or flow.does[squares[0]] not in SQUARES:
        return None
    values = set(flow.origins(squares[0]))
    if len(values) != 1:
        return None
    source = values.pop()
    ends = [use for use in _products(flow, root) if source in flow.origins(use)]
    if len(ends) != 1:
        return None
    end = _with_weight(flow, ends[0])
    nodes = frozenset(node for node in flow.between(source, end) if not flow.is_held[node])
    return PatternMatch("norm", nodes, "x times 1 / sqrt(mean(x squared))", end)


def _above(flow: Flow, node: int) -> int | None:
    """Returns what the root is taken of, past the addition of epsilon."""
    origins = flow.origins(node)
    if len(origins) == 1 and flow.does[origins[0]] == "add":
        origins = flow.origins(origins[0])
    return origins[0] if len(origins) == 1 else None


def _products(flow: Flow, root: int) -> list[int]:
    """Returns the products that the inverse of a root goes into, and the quotients by the root."""
    uses = flow.uses(root)
    if flow.does[root] == "rsqrt":
        return [use for use in uses if flow.does[use] == "multiply"]
    quotients = [use for use in uses if flow.does[use] in ("divide", "power")]
    return quotients + [use for quotient in quotients for use in flow.uses(quotient) if flow.does[use] == "multiply"]


def _with_weight(flow: Flow, node: int) -> int:
    """Returns the last of a following product with a held weight and addition of a held bias, else the node itself."""
    for word in ("multiply", "add"):
        uses = flow.uses(node)
        if len(uses) == 1 and flow.does[uses[0]] == word and any(flow.is_held[src] for src in flow.reads[uses[0]]):
            node = uses[0]
    return node
