"""Where a model begins and ends: embeddings, the head and the loss."""

from nbkit.analysis.structure.flow import Flow
from nbkit.analysis.structure.patterns.found import Found


def embeddings(flow: Flow) -> list[Found]:
    """Every row lookup in a weight matrix by integers."""
    found = []
    for node in flow.order:
        word = flow.words[node]
        if word == "embedding" or (word == "gather" and _is_lookup(flow, node)):
            found.append(Found("embedding", frozenset({node}), "rows of a weight taken by integers", node))
    return found


def _is_lookup(flow: Flow, node: int) -> bool:
    reads = flow.reads[node]
    if len(reads) != 2 or not flow.is_held[reads[0]] or flow.kinds[flow.origin(reads[0])] != "parameter":
        return False
    table, indices, rows = (flow.shape(at) for at in (reads[0], reads[1], node))
    if table is None or indices is None or rows is None:
        return False
    return len(table) == 2 and rows == [*indices, table[1]] and flow.is_integer(reads[1])


def heads(flow: Flow, embedded: list[Found]) -> list[Found]:
    """Every last projection to as many values as the embedding has rows, or whose results a cross-entropy reads."""
    sizes = {shape[0] for found in embedded for at in found.nodes if (shape := _table(flow, at))}
    projecting: set[int] = set()
    found = []
    for node in reversed(flow.order):
        is_last = not any(reader in projecting for reader in flow.readers[node])
        is_projection = flow.is_projection(node)
        if is_projection or not is_last:
            projecting.add(node)
        if not (is_projection and is_last):
            continue
        shape = flow.shape(node)
        if any(flow.words[use] in ("cross_entropy", "log_softmax", "_log_softmax") for use in flow.uses(node)):
            found.append(Found("head", frozenset({node}), "last projection, read by a cross-entropy", node))
        elif shape and shape[-1] in sizes:
            evidence = f"last projection, to as many values as the embedding has rows ({shape[-1]})"
            found.append(Found("head", frozenset({node}), evidence, node))
    return found


def _table(flow: Flow, node: int) -> list[int | None] | None:
    """Shape of the weight that an embedding takes rows of."""
    shapes = [flow.shape(src) for src in flow.reads[node] if flow.is_held[src]]
    return next((shape for shape in shapes if shape and len(shape) == 2), None)


def losses(flow: Flow) -> list[Found]:
    """Every loss op, with all that is computed from its result in the forward."""
    found = []
    reached: set[int] = set()
    for node in flow.order:
        if flow.words[node] in ("cross_entropy", "loss") or any(src in reached for src in flow.reads[node]):
            reached.add(node)
    ops = frozenset(node for node in reached if flow.kinds[node] == "op")
    if ops:
        first = min(ops, key=flow.rank.__getitem__)
        found.append(Found("loss", ops, f"{flow.names[first]} op and what is computed from it", first))
    return found
