"""Finds rotary positions: x times one table plus its halves, swapped, times another."""

from nbkit.analysis.structure.flow import Flow
from nbkit.analysis.structure.patterns.pattern_match import PatternMatch
from nbkit.ops.kinds import PARTS

EVIDENCE = "x times a table plus its swapped halves times another"


def rotaries(flow: Flow) -> list[PatternMatch]:
    """Returns every use of rotary positions; their tables only as far as they are sines and cosines read there."""
    result = []
    for node in flow.order:
        if flow.does[node] != "add":
            continue
        products = flow.origins(node)
        if len(products) != 2 or any(flow.does[at] != "multiply" for at in products):
            continue
        for plain, swapped in (products, products[::-1]):
            turned = [at for at in flow.origins(swapped) if flow.does[at] == "concat"]
            if len(turned) == 1 and _halves(flow, turned[0]) in flow.origins(plain):
                source = _halves(flow, turned[0])
                assert source is not None
                nodes = {at for at in flow.between(source, node) if not flow.is_held[at]}
                result.append(PatternMatch("rotary", frozenset(nodes), EVIDENCE, node))
                break
    return result


def _halves(flow: Flow, cat: int) -> int | None:
    """Returns what both inputs of a concatenation are parts of."""
    sources = set()
    for origin in flow.origins(cat):
        node = origin
        while flow.does[node] in PARTS | {"negate"} and flow.moving[node]:
            node = flow.origin(flow.moving[node][0])
        if node == origin:
            return None
        sources.add(node)
    return sources.pop() if len(sources) == 1 and len(flow.reads[cat]) == 2 else None
