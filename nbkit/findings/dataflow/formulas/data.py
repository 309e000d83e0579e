"""Rules about data: pixels that are divided by 255 twice, samples and targets in orders of their own."""

from collections.abc import Iterator

from nbkit.findings.dataflow.flow import Flow, Op
from nbkit.findings.finding import Finding, rule
from nbkit.ops.families import DIVIDES, GATHERS, LOSSES, MULTIPLIES, SAME_ELEMENTS
from nbkit.step.step import Tensor

BYTE = 255
ONCE = "Divide once: torchvision's ToTensor and v2.ToDtype(torch.float32, scale=True) bring bytes to 0 ... 1 already."
ORDER = "Draw the order once: order = torch.randperm(n), then images[order] and labels[order]."


@rule("warning", rank=5)
def scaled_twice(flow: Flow) -> Iterator[Finding]:
    """Values are divided by 255, and what comes out is divided by 255 once more: pixels end at 1 / 255."""
    for op in (one for one in flow.named(*DIVIDES, *MULTIPLIES) if _scales_bytes(one)):
        before = flow.maker(flow.behind(op.inputs[0], SAME_ELEMENTS))
        if before is not None and _scales_bytes(before):
            message = (
                f"{op.name} divides {[*op.inputs[0].shape]} by 255, which {before.name} did before: bytes of 0 to 255 "
                "end between 0 and 0.0039, and all samples are nearly the same"
            )
            yield scaled_twice.finding(message, ONCE, op.op_id, evidence={"first_op_id": before.op_id})


def _scales_bytes(op: Op) -> bool:
    number = op.arguments.get("other") if op.is_ahead and len(op.inputs) == 1 else None
    if not isinstance(number, int | float) or not number:
        return False
    return abs((number if op.name in DIVIDES else 1 / number) / BYTE - 1) < 1e-6


@rule("warning", rank=6)
def parted_pairs(flow: Flow) -> Iterator[Finding]:
    """A loss compares what is computed of samples in one random order with targets in another one."""
    permutations = [op for op in flow.named("randperm") if op.outputs]
    for op in flow.named(*LOSSES) if len(permutations) > 1 else ():
        if not op.is_ahead or len(op.inputs) < 2 or flow.step.requires_grad[op.inputs[1].row]:
            continue
        of_samples, of_targets = (_orders(flow, one) for one in op.inputs[:2])
        sizes = {order.outputs[0].numel for order in of_samples} & {order.outputs[0].numel for order in of_targets}
        if sizes and not {one.op_id for one in of_samples} & {one.op_id for one in of_targets}:
            target = of_targets[0]
            message = (
                f"the targets of {op.name.removesuffix('_forward')} are in an order that randperm({min(sizes)}) drew, "
                "and the samples beside them in the order of another call: sample and target of a row do not belong "
                "together"
            )
            place = next((one for one in flow.readers(target) if one.name in GATHERS), op)
            yield parted_pairs.finding(message, ORDER, place.op_id, evidence={"loss_op_id": op.op_id})


def _orders(flow: Flow, tensor: Tensor) -> list[Op]:
    """Returns the random permutations by which rows were picked that a tensor was computed of."""
    found = dict[int, Op]()
    for op in flow.made_of(tensor):
        if op.name in GATHERS and len(op.inputs) == 2 and op.outputs:
            order = flow.origin(op.inputs[1])
            is_whole = order is not None and order.name == "randperm" and order.outputs[0].shape == op.inputs[1].shape
            if order is not None and is_whole and op.inputs[0].shape[:1] == op.outputs[0].shape[:1]:
                found[order.op_id] = order
    return [*found.values()]
