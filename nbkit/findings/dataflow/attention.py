"""Rules about attention: a softmax over another dimension than its product sums over, a mask that is added twice."""

from collections.abc import Iterator
from typing import NamedTuple

from nbkit.findings.dataflow.dims import dim_after
from nbkit.findings.dataflow.flow import Flow, Op
from nbkit.findings.finding import Finding, rule
from nbkit.ops.families import ADDS, DRAWS, FACTORS, FORMS, SOFTMAX, family
from nbkit.step.step import Tensor

# A layer's product is none of them: what adds a bias has a weight.
PRODUCTS = family("BATCHED_PRODUCTS mm")
# What stands between the product of queries and keys and its softmax: scale, masks, a cap.
BETWEEN = family("FORMS ARITHMETIC MASKED_FILLS tanh")
DROPPING = DRAWS | {"div_"}
# A reader that normalizes the weights anew, or weighs them, makes any dimension right (slot attention).
NORMALISING = family("ARITHMETIC VECTOR_NORMS sum")
MOST_STEPS = 16
SUM = "Give the softmax the dimension of the keys, dim=-1 of scores made as q @ k.transpose(-2, -1)."
ONCE = "Add the mask once: here, or where the scores are made."


class Scores(NamedTuple):
    """Describes what a softmax of attention reads: their product, and what was added to them, the last first."""

    product: Op
    added: list[tuple[Op, Tensor]]


@rule("warning", "hint", rank=60)
def softmax_dim(flow: Flow) -> Iterator[Finding]:
    """Weights of attention are normalized over one dimension and summed over another; a hint where queries and keys are
    not as many, as slots may compete for inputs.

    In a square of positions, and over a dimension of the batch (heads), it is hardly meant; where there are fewer
    queries than keys it may be (slots that compete for what they see), and is a hint.
    """
    for op in flow.named(*SOFTMAX):
        if not op.is_ahead or not op.inputs or not op.outputs or "dim" not in op.arguments:
            continue
        shape, dim = op.outputs[0].shape, int(op.arguments["dim"])
        scores = _scores(flow, op.inputs[0])
        if not shape or scores is None or not _is_of_activations(flow, scores.product):
            continue
        uses = _uses(flow, op, dim % len(shape))
        if not uses or any(use is None or use.is_summed for use in uses):
            continue
        use = uses[0]
        assert use is not None
        size, summed = shape[dim % len(shape)], use.summed
        is_certain = use.is_batch or size == summed
        message = (
            f"the softmax is over dimension {dim} of the scores {[*shape]}, but {use.product.name} sums its result "
            f"over another one, of size {summed}: the weights of such a sum do not add up to 1"
        )
        evidence = {"product_op_id": use.product.op_id, "shape": [*shape], "dim": dim}
        yield softmax_dim.finding(
            message, SUM, op.op_id, severity="warning" if is_certain else "hint", evidence=evidence
        )


@rule("warning", rank=70)
def twice_added_mask(flow: Flow) -> Iterator[Finding]:
    """The same mask or bias is added to the same scores of attention twice."""
    for op in flow.named(*SOFTMAX):
        scores = _scores(flow, op.inputs[0]) if op.is_ahead and op.inputs else None
        seen: dict[int, Op] = {}
        for add, mask in reversed(scores.added if scores else []):
            number = flow.behind(mask).tensor_id
            if mask.numel > 1 and number in seen:
                message = (
                    f"{add.name} adds the same mask of shape {[*mask.shape]} to the scores of attention a second time"
                )
                yield twice_added_mask.finding(message, ONCE, add.op_id, evidence={"first_op_id": seen[number].op_id})
            seen[number] = add


def _scores(flow: Flow, tensor: Tensor, steps: int = MOST_STEPS) -> Scores | None:
    """Returns the product that a softmax reads, behind scale and masks; null where it is none."""
    op = flow.maker(tensor)
    if op is None or not steps or not op.is_ahead:
        return None
    if op.name in PRODUCTS:
        return Scores(op, [])
    if op.name not in BETWEEN:
        return None
    for number, operand in enumerate(op.inputs):
        found = _scores(flow, operand, steps - 1)
        if found is not None:
            others = [other for at, other in enumerate(op.inputs) if at != number]
            added = [(op, other) for other in others if op.name in ADDS]
            return Scores(found.product, [*added, *found.added])
    return None


def _is_of_activations(flow: Flow, product: Op) -> bool:
    """Returns whether both operands are computed: a weight on one side makes it a linear layer, which may assign."""
    places = FACTORS[product.name]
    return len(product.inputs) > places[1] and not any(flow.behind(product.inputs[place]).name for place in places)


class Use(NamedTuple):
    """Describes how a product uses weights: whether it sums over the dimension of their softmax, and the size it does.

    `is_batch`: the dimension of the softmax is one of independent products, such as heads.
    """

    product: Op
    is_summed: bool
    is_batch: bool
    summed: int


def _uses(flow: Flow, softmax: Op, dim: int) -> list[Use | None]:
    """Returns how products use the result of a softmax; null stands for a use that cannot be judged."""
    uses: list[Use | None] = []
    pending = [(softmax, dim)]
    for _ in range(MOST_STEPS):
        if not pending:
            return uses
        op, dim = pending.pop()
        for reader in flow.readers(op):
            if not reader.is_ahead:
                continue
            place = reader.place_of(_given(op))
            if reader.name in PRODUCTS:
                uses.append(_use(flow, reader, place, dim) if _keeps_matrices(softmax, reader) else None)
            elif reader.name in FORMS or is_dropout(flow, reader, place):
                after = dim_after(reader, place, dim)
                if after is None:
                    uses.append(None)
                else:
                    pending.append((reader, after))
            elif reader.name in NORMALISING:
                uses.append(None)
    return [None]


def _keeps_matrices(softmax: Op, product: Op) -> bool:
    """Returns whether the product has the matrices of the softmax: rows of all of them at once go into a layer."""
    return product.name != "mm" or len(softmax.outputs[0].shape) == 2


def _given(op: Op) -> int:
    return op.outputs[0].tensor_id if op.outputs else -1


def is_dropout(flow: Flow, op: Op, place: int) -> bool:
    """Returns whether an op drops elements: itself, or by the product with a mask of random numbers."""
    if op.name == "native_dropout":
        return True
    if op.name not in ("mul", "mul_") or len(op.inputs) != 2 or op.inputs[0].shape != op.inputs[1].shape:
        return False
    maker = flow.maker(op.inputs[1 - place])
    return maker is not None and maker.name in DROPPING


def _use(flow: Flow, product: Op, place: int, dim: int) -> Use | None:
    left, right = FACTORS[product.name]
    if place not in (left, right) or len(product.inputs) <= right:
        return None
    other = product.inputs[right if place == left else left]
    maker = flow.origin(other)
    if flow.behind(other).name or (maker is not None and maker.name in SOFTMAX):
        return None
    shape = product.inputs[place].shape
    summed = len(shape) - (1 if place == left else 2)
    is_batch = dim < len(shape) - 2
    # One row per product: capsules, which share themselves among those of the next layer.
    if is_batch and shape[-1] * shape[-2] == shape[summed]:
        return None
    return Use(product, dim == summed, is_batch, shape[summed])
