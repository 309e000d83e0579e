"""Rules about the terms of a loss: a weight of each sample that is one of their mean."""

from collections.abc import Iterator

from nbkit.findings.dataflow.flow import Flow, Op
from nbkit.findings.finding import Finding, rule
from nbkit.ops.families import CLASS_LOSSES, ELEMENT_LOSSES, MULTIPLIES, family
from nbkit.step.step import Tensor

FOCAL = (
    "Weigh each sample before the mean: entropy = cross_entropy(scores, labels, reduction='none'); "
    "loss = ((1 - (-entropy).exp()) ** gamma * entropy).mean()."
)
LOSSES = CLASS_LOSSES | ELEMENT_LOSSES
FACTOR = family("FORMS FORMULAS mean sum")
MOST_OPS = 16


@rule("warning", rank=165)
def weighted_mean(flow: Flow) -> Iterator[Finding]:
    """A focal loss weighs the mean of a loss by (1 - exp(-mean)) ** gamma: one weight for all samples."""
    for op in flow.named(*MULTIPLIES):
        is_scalar = op.is_ahead and len(op.inputs) == 2 and not any(one.shape for one in op.inputs)
        for weight, other in (op.inputs, op.inputs[::-1]) if is_scalar else ():
            loss, ops = _source(flow, weight)
            own, plain = _source(flow, other)
            power = next((one.arguments.get("exponent") for one in ops if one.name == "pow"), None)
            is_focal = power and any(one.name == "exp" for one in ops)
            if loss is None or own is not loss or not is_focal or any(one.name in ("exp", "pow") for one in plain):
                continue
            message = (
                f"the weight of a focal loss, to the power of {power:g}, is computed of the mean of "
                f"{loss.name.removesuffix('_forward')} over {loss.inputs[1].numel:,} targets, and multiplies this "
                "mean: one number for all, where cross_entropy of each target has a weight of its own, so that hard "
                "samples count no more than easy ones"
            )
            yield weighted_mean.finding(message, FOCAL, op.op_id, evidence={"loss_op_id": loss.op_id})


def _source(flow: Flow, tensor: Tensor) -> tuple[Op | None, list[Op]]:
    """Returns the loss of all targets, one number, that a number is computed of alone, and the ops between."""
    between: list[Op] = []
    for _ in range(MOST_OPS):
        op = flow.maker(tensor)
        if op is not None and op.name in LOSSES and len(op.inputs) > 1 and op.inputs[1].numel > 1:
            return (op if op.outputs[0].shape == () else None), between
        if op is None or op.name not in FACTOR or tensor.shape or len(op.inputs) != 1:
            break
        between.append(op)
        tensor = op.inputs[0]
    return None, between
