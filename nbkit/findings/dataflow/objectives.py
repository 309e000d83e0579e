"""Rule about the sign of a loss: one that is to become small, and is made large."""

from collections.abc import Iterator

from nbkit.findings.dataflow.flow import Flow, Op
from nbkit.findings.dataflow.found import Found
from nbkit.ops.families import CLASS_LOSSES, ELEMENT_LOSSES

# They measure how wrong a result is; all become small by training.
ERRORS = ELEMENT_LOSSES | CLASS_LOSSES
ADVICE = (
    "Take the minus out: nll_loss, cross_entropy and mse_loss are made small as they are. Nothing, if an adversary is "
    "trained by it."
)


def negated_loss(flow: Flow) -> Iterator[Found]:
    """Finds a backward pass that begins at minus a loss, which the optimizer then makes as large as it can."""
    for root in (op for op in flow.named("ones_like") if op.phase == "backward" and op.inputs):
        op = flow.origin(root.inputs[0])
        loss = flow.origin(op.inputs[0]) if op is not None and _negates(op) else None
        if op is not None and loss is not None and loss.name in ERRORS:
            name = loss.name.removesuffix("_forward")
            message = f"the loss is {name}, negated: training makes {name} larger"
            yield Found("negated_loss", "hint", message, ADVICE, op, {"loss_op_id": loss.op_id})


def _negates(op: Op) -> bool:
    factor = op.arguments.get("other")
    return bool(op.inputs) and (
        op.name == "neg" or (op.name == "mul" and isinstance(factor, int | float) and factor < 0)
    )
