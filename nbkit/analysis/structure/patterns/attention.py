"""Finds softmax attention: a product of two activations, its softmax, and a product with a third; or one op for all."""

from nbkit.analysis.structure.flow import Flow
from nbkit.analysis.structure.patterns.pattern_match import PatternMatch
from nbkit.ops.kinds import SCORING


def attentions(flow: Flow) -> list[PatternMatch]:
    """Returns every softmax attention of a graph, with the projections before and after it."""
    result = []
    for node in flow.order:
        if flow.does[node] == "attention":
            result.append(_with_projections(flow, {node}, node, f"{flow.op(node)} op"))
        elif flow.does[node] == "softmax":
            scores, mixed = _product_before(flow, node), _product_after(flow, node)
            if scores is not None and mixed is not None:
                core = {scores, node, mixed}
                result.append(_with_projections(flow, core, mixed, "softmax of a product of activations times a third"))
    return result


def _with_projections(flow: Flow, core: set[int], result: int, evidence: str) -> PatternMatch:
    before, projections = flow.back_to_projections(result)
    after = flow.projected_by(result)
    end = after[0] if len(after) == 1 else result
    return PatternMatch(
        "attention", frozenset(core | before | projections | set(after[:1] if len(after) == 1 else [])), evidence, end
    )


def _product_before(flow: Flow, softmax: int) -> int | None:
    open_ = flow.origins(softmax)
    for _ in range(8):
        for node in open_:
            if flow.does[node] == "matmul" and node not in flow.projections:
                return node
        open_ = [origin for node in open_ if flow.does[node] in SCORING for origin in flow.origins(node)]
    return None


def _product_after(flow: Flow, softmax: int) -> int | None:
    open_ = flow.uses(softmax)
    for _ in range(4):
        for node in open_:
            if flow.does[node] == "matmul" and node not in flow.projections:
                return node
        open_ = [use for node in open_ if flow.does[node] in SCORING for use in flow.uses(node)]
    return None
