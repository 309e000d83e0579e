"""Finds where a model begins and ends: embeddings, the head and the loss."""

from itertools import permutations

from nbkit.analysis.structure.flow import Flow
from nbkit.analysis.structure.patterns.pattern_match import PatternMatch
from nbkit.ops.kinds import LOSSES
from nbkit.step.decode import Shape


def embeddings(flow: Flow) -> list[PatternMatch]:
    """Returns every row lookup in a weight matrix by integers."""
    return [
        PatternMatch("embedding", frozenset({node}), "rows of a weight taken by integers", node)
        for node in flow.order
        if flow.does[node] == "embedding" and _table(flow, node)
    ]


def _table(flow: Flow, node: int) -> Shape | None:
    """Returns shape of the weight whose rows an op takes by integers; None if it does something else."""
    rows = flow.shapes[node]
    for table, indices in permutations(flow.reads[node], 2):
        sizes, counts = flow.shapes[table], flow.shapes[indices]
        is_weight = flow.kinds[flow.origin(table)] == "parameter" and flow.may_be_integer(indices)
        if is_weight and sizes and counts is not None and len(sizes) == 2 and rows == (*counts, sizes[1]):
            return sizes
    return None


def heads(flow: Flow, embedded: list[PatternMatch]) -> list[PatternMatch]:
    """Returns each last projection to as many values as the embedding has rows, or that a cross-entropy reads."""
    sizes = {shape[0] for match in embedded for at in match.nodes if (shape := _table(flow, at))}
    projecting: set[int] = set()
    result = []
    for node in reversed(flow.order):
        is_last = not any(reader in projecting for reader in flow.readers[node])
        is_projection = node in flow.projections
        if is_projection or not is_last:
            projecting.add(node)
        if not (is_projection and is_last):
            continue
        shape = flow.shapes[node]
        if any(flow.does[use] in ("loss", "log_softmax") for use in flow.uses(node)):
            result.append(PatternMatch("head", frozenset({node}), "last projection, read by a cross-entropy", node))
        elif shape and shape[-1] in sizes:
            evidence = f"last projection, to as many values as the embedding has rows ({shape[-1]})"
            result.append(PatternMatch("head", frozenset({node}), evidence, node))
    return result


def losses(flow: Flow) -> list[PatternMatch]:
    """Returns every loss op, with all that is computed from its result in the forward."""
    result = []
    reached: set[int] = set()
    for node in flow.order:
        if flow.does[node] in LOSSES or any(src in reached for src in flow.reads[node]):
            reached.add(node)
    ops = frozenset(node for node in reached if flow.kinds[node] == "op")
    if ops:
        first = min(ops, key=flow.rank.__getitem__)
        result.append(PatternMatch("loss", ops, f"{flow.op(first)} op and what is computed from it", first))
    return result
