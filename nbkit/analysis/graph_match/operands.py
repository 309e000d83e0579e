"""Tells which parameters make the queries, the keys and the values of attention, whatever they are called."""

from collections.abc import Iterator

from nbkit.analysis.graph_match.side import Node, Side

OPERANDS = ("query", "key", "value")
# So many ops lie between a projection and the attention that reads it, at most: rotary embedding, norms, repeats.
MOST = 100


def attention_operands(side: Side) -> dict[int, str]:
    """Returns the operand by node_id of the parameters that make one alone; a joint projection makes several."""
    found: dict[int, set[str]] = {}
    for node in side.nodes.values():
        if node.phase in (None, "forward"):
            for operand, source in _operands(side, node):
                for parameter in _parameters_behind(side, source):
                    found.setdefault(parameter, set()).add(operand)
    return {parameter: next(iter(operands)) for parameter, operands in found.items() if len(operands) == 1}


def _operands(side: Side, node: Node) -> Iterator[tuple[str, int]]:
    """Yields what a fused attention reads, or what the products around a softmax do."""
    if node.does == "attention":
        yield from zip(OPERANDS, side.sources(node.node_id), strict=False)
    elif node.does == "softmax":
        scores = next(_products_behind(side, node.node_id), None)
        if scores is None or any(side.nodes[source].is_state for source in side.sources(scores)):
            return  # that of a router or of a head
        yield from zip(OPERANDS, side.sources(scores), strict=False)
        for use in side.uses(node.node_id):
            if side.nodes[use].does == "matmul":
                yield from ((OPERANDS[2], source) for source in side.sources(use) if source != node.node_id)


def _products_behind(side: Side, start: int) -> Iterator[int]:
    """Yields the matrix products that an op reads the results of, by way of other ops, the nearest first."""
    waiting, met = [start], {start}
    while waiting and len(met) < MOST:
        for source in side.sources(waiting.pop(0)):
            if source in met:
                continue
            met.add(source)
            if side.nodes[source].does == "matmul":
                yield source
            else:
                waiting.append(source)


def _parameters_behind(side: Side, source: int) -> list[int]:
    """Returns the parameters of the projections that an operand comes from."""
    products = [source] if side.nodes[source].does == "matmul" else _products_behind(side, source)
    read = [parameter for product in products for parameter in side.sources(product)]
    return [parameter for parameter in read if side.nodes[parameter].kind == "parameter"]
