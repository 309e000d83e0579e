"""Rules about scores: a scale of attention that stands wrong, a similarity to itself among the candidates."""

from collections.abc import Iterator

from nbkit.findings.dataflow.attention import PRODUCTS, is_dropout
from nbkit.findings.dataflow.flow import Flow, Op
from nbkit.findings.finding import Finding, rule
from nbkit.ops.families import (
    ADDS,
    CLASS_LOSSES,
    DIVIDES,
    FACTORS,
    FORMS,
    FUSED_ATTENTION,
    LAYER_PRODUCTS,
    LOG_SOFTMAX,
    MASKED_FILLS,
    MULTIPLIES,
    PARTS,
    SOFTMAX,
)
from nbkit.step.step import Tensor

MOST_OPS = 16
CLOSE = 0.01
DIVIDED = "Multiply by d ** -0.5, or divide by d ** 0.5: scores = q @ k.transpose(-2, -1) * d ** -0.5."
BEHIND = "Scale the scores: (q @ k.transpose(-2, -1) * scale).softmax(-1); the weights behind it are to add up to 1."
SELF = (
    "Take the diagonal out before: scores.fill_diagonal_(float('-inf')), or masked_fill() with torch.eye(n, "
    "dtype=torch.bool)."
)
FEWEST = 4


@rule("warning", rank=62)
def misplaced_scale(flow: Flow) -> Iterator[Finding]:
    """Scores of attention are multiplied by sqrt(d), where they are to be divided by it, or the weights behind the
    softmax are scaled by 1 / sqrt(d); not where queries or keys are normalized.
    """
    for op in flow.ops.values():
        if not op.is_ahead or not op.inputs:
            continue
        if op.name.startswith(FUSED_ATTENTION):
            factor = op.arguments.get("scale")
            found = (op, op.inputs[:2], float(factor), op) if isinstance(factor, int | float) else None
        else:
            found = _scores(flow, op) if op.name in SOFTMAX else None
        if found is None or not all(_is_of_layer(flow, one) for one in found[1]):
            continue
        product, (query, _), factor, at = found
        size = query.shape[-1]
        if size > FEWEST and abs(factor**2 / size - 1) < CLOSE:
            message = (
                f"the scores of attention are multiplied by {factor:g}, which is sqrt({size}) for queries of {size} "
                f"elements, where they are to be divided by it: they are {size} times as large as they were to be, and "
                "the softmax takes nearly one position alone"
            )
            yield misplaced_scale.finding(message, DIVIDED, at.op_id, evidence={"factor": factor, "size": size})
        scaled = _scaled_weights(flow, op, size) if factor == 1 and product is not op else None
        if scaled is not None:
            message = (
                f"the weights of attention are scaled by 1 / sqrt({size}) behind the softmax, and the scores in front "
                f"of it are not: what comes out is {size**0.5:.3g} times as small, and the softmax as sharp as without"
            )
            yield misplaced_scale.finding(message, BEHIND, scaled.op_id, evidence={"size": size})


def _scores(flow: Flow, softmax: Op) -> tuple[Op, list[Tensor], float, Op] | None:
    """Returns the product that a softmax reads, its two factors, the number by which it is multiplied, and where."""
    tensor, factor, at = softmax.inputs[0], 1.0, softmax
    for _ in range(MOST_OPS):
        op = flow.maker(tensor)
        if op is None or not op.is_ahead:
            return None
        if op.name in PRODUCTS:
            places = FACTORS[op.name]
            return (op, [op.inputs[place] for place in places], factor, at) if len(op.inputs) > places[1] else None
        number = _number(op)
        if number is not None:
            factor, at = factor * number, op
        elif op.name not in FORMS | ADDS | MASKED_FILLS:
            return None
        tensor = op.inputs[1] if op.name == "where" and len(op.inputs) > 1 else op.inputs[0]
    return None


def _number(op: Op) -> float | None:
    """Returns the number by which an op multiplies."""
    other = op.arguments.get("other") if len(op.inputs) == 1 else None
    if not isinstance(other, int | float) or not other or op.name not in MULTIPLIES | DIVIDES:
        return None
    return float(other) if op.name in MULTIPLIES else 1 / float(other)


def _is_of_layer(flow: Flow, tensor: Tensor) -> bool:
    """Returns whether a linear layer gives queries or keys: what is normalized, or scaled before, has other sizes."""
    op = flow.maker(flow.behind(tensor, FORMS | PARTS))
    return op is not None and (op.name in LAYER_PRODUCTS or (op.name in ADDS and any(one.name for one in op.inputs)))


def _scaled_weights(flow: Flow, softmax: Op, size: int) -> Op | None:
    """Returns the op that scales weights by 1 / sqrt(size) in front of a product."""
    op = softmax
    for _ in range(MOST_OPS):
        for reader in flow.readers(op):
            number = _number(reader)
            is_scale = number is not None and abs(number**2 * size - 1) < CLOSE
            if is_scale and any(one.name in PRODUCTS for _, one in flow.uses(reader)):
                return reader
        passing = (one for one in flow.readers(op) if one.name in FORMS or is_dropout(flow, one, 0))
        following = next((one for one in passing if one.is_ahead and one.outputs), None)
        if following is None:
            return None
        op = following
    return None


@rule("warning", rank=64)
def self_similarity(flow: Flow) -> Iterator[Finding]:
    """A loss chooses among the similarities of rows to all rows of the same tensor, each row's to itself with them."""
    for op in flow.named(*LOG_SOFTMAX, "logsumexp"):
        found = _scores(flow, op) if op.is_ahead and op.inputs else None
        if found is None or not flow.step.requires_grad[op.inputs[0].row] or not _is_plain(flow, op):
            continue
        product, factors, _, _ = found
        one, other = (flow.behind(factor).tensor_id for factor in factors)
        shape = product.outputs[0].shape
        is_chosen = op.name == "logsumexp" or any(use.name in CLASS_LOSSES for _, use in flow.uses(op))
        if one == other and is_chosen and shape[-2:-1] == shape[-1:] and shape[-1] > FEWEST:
            message = (
                f"{op.name.strip('_')} is over the similarities of {shape[-1]} rows to the same {shape[-1]} rows: the "
                "similarity of each row to itself is among them, mostly the largest of all, and nothing takes it out"
            )
            yield self_similarity.finding(message, SELF, product.op_id, evidence={"loss_op_id": op.op_id})


def _is_plain(flow: Flow, op: Op) -> bool:
    """Returns whether only factors stand between a product and an op: what is added, or filled in, may be a mask."""
    tensor, step = op.inputs[0], flow.step
    while (made := flow.maker(tensor)) is not None and step.sources[tensor.row] == step.makers[tensor.row]:
        if made.name in PRODUCTS:
            return True
        if made.name not in FORMS and _number(made) is None:
            return False
        tensor = made.inputs[0]
    return False
