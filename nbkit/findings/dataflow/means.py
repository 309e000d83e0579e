"""Finds means that count what a mask has set to 0."""

from collections.abc import Iterator
from itertools import permutations

from nbkit.findings.dataflow.flow import Flow, Op
from nbkit.findings.finding import Finding, rule
from nbkit.ops.families import (
    ADDS,
    CASTS,
    COMPARISONS,
    DIVIDES,
    FORMS,
    LOGIC,
    MULTIPLIES,
    PARTS,
    RANGES,
    SUBTRACTS,
)
from nbkit.step.step import Tensor

MOST_STEPS = 16
COUNTED = FORMS | PARTS | ADDS | SUBTRACTS
ADVICE = "Divide the sum by what the mask keeps: (x * mask).sum() / mask.sum().clamp(min=1)."


@rule("hint", rank=160)
def padded_mean(flow: Flow) -> Iterator[Finding]:
    """A mean counts elements that a mask of integers or booleans (lengths, padding) has set to 0."""
    for op in flow.named("mean", "sum"):
        if op.name == "sum" and not _is_divided_sum(flow, op):
            continue
        masked = flow.origin(op.inputs[0]) if op.is_ahead and op.inputs and op.outputs else None
        mask = None if masked is None else _mask_of(flow, masked)
        if masked is None or mask is None or not _is_reduced(op, masked, mask) or _is_scaled(flow, op):
            continue
        message = (
            f"the mean divides by all {_count(op):,} elements, and counts those that "
            f"{masked.name} has set to 0 by a mask of shape {[*mask.shape]}: the more of them, the smaller it is"
        )
        yield padded_mean.finding(message, ADVICE, op.op_id, evidence={"mask_op_id": masked.op_id})


def mean_of(flow: Flow, op: Op) -> Op | None:
    """Returns the mean of all that an op gave, which nothing scales by what counts; null if there is none."""
    means = (reader for _, reader in flow.uses(op) if reader.name == "mean" or _is_divided_sum(flow, reader))
    return next((one for one in means if one.outputs[0].numel == 1 and not _is_scaled(flow, one)), None)


def _count(op: Op) -> int:
    """Returns of how many elements a reduction makes one."""
    return op.inputs[0].numel // max(op.outputs[0].numel, 1)


def _is_divided_sum(flow: Flow, op: Op) -> bool:
    """Returns whether an op is a sum that is divided by the number of all its elements."""
    if op.name != "sum" or not op.inputs or not op.outputs:
        return False
    by = [reader.arguments.get("other") for reader in flow.readers(op) if reader.name in DIVIDES]
    return _count(op) in by


def _mask_of(flow: Flow, op: Op) -> Tensor | None:
    """Returns the mask by which an op sets elements of what another op computed to 0; null if it does not."""
    if len(op.inputs) < 2:
        return None
    if op.name in MULTIPLIES:
        pairs = permutations(op.inputs[:2])
        found = (mask for one, mask in pairs if _is_computed(flow, one) and _is_mask(flow, mask, one))
        return next(found, None)
    if op.name in ("masked_fill", "masked_fill_") and op.arguments.get("value") == 0:
        one, mask = op.inputs[:2]
        return mask if _is_computed(flow, one) and _is_mask(flow, mask, one) else None
    return None


def _is_computed(flow: Flow, tensor: Tensor) -> bool:
    return "float" in tensor.dtype and flow.origin(tensor) is not None


def _is_mask(flow: Flow, tensor: Tensor, of: Tensor) -> bool:
    """Returns whether a tensor says which elements are padding: by booleans that were given, or by lengths and ids.

    Integers are a mask only where they are spread over a further size; else they may be counts, classes or rewards.
    """
    is_spread = len(tensor.shape) == len(of.shape) and tensor.numel < of.numel
    for _ in range(MOST_STEPS):
        maker = flow.maker(tensor)
        if maker is None:
            is_integer = tensor.dtype.startswith(("int", "uint")) and is_spread
            return (tensor.dtype == "bool" or is_integer) and tensor.memory not in flow.held and tensor.numel > 1
        if maker.name in COMPARISONS:
            return _tells_padding(flow, maker)
        if maker.name not in FORMS | CASTS.keys() | LOGIC | {"rsub"} or not maker.inputs:
            return False
        is_spread |= maker.name in ("expand", "unsqueeze")
        tensor = maker.inputs[0]
    return False


def _tells_padding(flow: Flow, op: Op) -> bool:
    """Returns whether a comparison is one of given integers: with an id, or of positions with lengths."""
    if any("float" in one.dtype for one in op.inputs) or any(one.memory in flow.held for one in op.inputs):
        return False
    if len(op.inputs) == 1:
        return _is_given(flow, op.inputs[0])
    makers = [flow.origin(one) for one in op.inputs]
    has_range = any(maker is not None and maker.name in RANGES for maker in makers)
    return op.name not in ("eq", "ne") and has_range and any(_is_given(flow, one) for one in op.inputs)


def _is_given(flow: Flow, tensor: Tensor) -> bool:
    """Returns whether integers are those that came in, in another form, or counted from them: lengths."""
    maker = flow.maker(tensor)
    while maker is not None and len(maker.inputs) == 1 and (maker.name in COUNTED or maker.name == "sum"):
        maker = flow.maker(maker.inputs[0])
    return maker is None


def _is_reduced(op: Op, masked: Op, mask: Tensor) -> bool:
    """Returns whether the mean is over a dimension along which the mask differs."""
    dims, count = op.arguments.get("dim"), len(op.inputs[0].shape)
    if not dims or op.inputs[0].shape != masked.outputs[0].shape:
        return op.outputs[0].numel == 1
    sizes = (1,) * (count - len(mask.shape)) + mask.shape
    return any(sizes[int(dim) % count] > 1 for dim in dims)


def _is_scaled(flow: Flow, op: Op) -> bool:
    """Returns whether the mean is divided by, or multiplied with, a tensor: the share that the mask keeps."""
    return any(one.name in DIVIDES | MULTIPLIES and len(one.inputs) == 2 for _, one in flow.uses(op))
