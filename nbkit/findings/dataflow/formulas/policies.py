"""Rules about losses of reinforcement learning: standardizing, clipping, and a target that is trained."""

from collections.abc import Iterator

from nbkit.findings.dataflow.flow import Flow, Op
from nbkit.findings.finding import Finding, rule
from nbkit.ops.families import (
    ADDS,
    DIVIDES,
    ELEMENT_LOSSES,
    MULTIPLIES,
    SUBTRACTS,
    family,
)
from nbkit.step.step import Tensor

PARENTHESES = "Put the difference in parentheses: (x - x.mean()) / (x.std() + eps)."
SURROGATE = (
    "Multiply both with the advantage first: torch.min(ratio * advantage, ratio.clamp(low, high) * advantage). Where "
    "one bound is meant, give clamp() that one alone."
)
DETACH = (
    "Compute the target under torch.no_grad(), or detach() it. Nothing, if the gradient through both sides is meant "
    "(residual gradients)."
)
# A discount of later rewards; a smaller factor may be the step of an integrator.
LEAST_DISCOUNT = 0.5
SPREAD = family("FORMS ADDS CLAMPS ROOTS")


@rule("warning", rank=166)
def divided_mean(flow: Flow) -> Iterator[Finding]:
    """`x - x.mean() / x.std()`: the mean alone is divided, where x was to be standardized."""
    for op in flow.named(*SUBTRACTS):
        quotient = flow.origin(op.inputs[1]) if op.is_ahead and len(op.inputs) == 2 else None
        if quotient is None or quotient.name not in DIVIDES or len(quotient.inputs) != 2:
            continue
        mean, spread = flow.origin(quotient.inputs[0]), flow.maker(flow.behind(quotient.inputs[1], SPREAD))
        if mean is None or mean.name != "mean" or spread is None or spread.name not in ("std", "var"):
            continue
        if len({flow.behind(one).tensor_id for one in (op.inputs[0], mean.inputs[0], spread.inputs[0])}) == 1:
            message = (
                f"the mean of {[*mean.inputs[0].shape]} is divided by {spread.name} of the same values, and subtracted "
                "from them: these keep their scale, and are not centered"
            )
            yield divided_mean.finding(message, PARENTHESES, op.op_id, evidence={"mean_op_id": mean.op_id})


@rule("warning", rank=167)
def undone_clamp(flow: Flow) -> Iterator[Finding]:
    """The smaller, or the larger, of x and clamp(x, low, high) is taken: one of both bounds does nothing."""
    for op in flow.named("minimum", "maximum"):
        for one, other in (op.inputs, op.inputs[::-1]) if op.is_ahead and len(op.inputs) == 2 else ():
            clamp = flow.origin(one)
            if clamp is None or clamp.name != "clamp" or flow.origin(other) is clamp:
                continue
            low, high = clamp.arguments.get("min"), clamp.arguments.get("max")
            if low is None or high is None or flow.behind(clamp.inputs[0]).tensor_id != flow.behind(other).tensor_id:
                continue
            which, bound = ("lower", low) if op.name == "minimum" else ("upper", high)
            message = (
                f"{op.name} of a tensor and of its own clamp({low:g}, {high:g}): the {which} bound of {bound:g} does "
                "nothing, as the tensor itself is taken beyond it"
            )
            yield undone_clamp.finding(message, SURROGATE, op.op_id, evidence={"clamp_op_id": clamp.op_id})


@rule("hint", rank=169)
def trained_target(flow: Flow) -> Iterator[Finding]:
    """The target of an element's loss is data plus a discounted result of the network that is trained, and has a
    gradient of its own, as where Q-learning does not detach it.
    """
    for op in flow.ops.values():
        is_loss = op.name in ELEMENT_LOSSES or (op.name == "sub" and _is_squared(flow, op))
        if not op.is_ahead or not is_loss or len(op.inputs) < 2:
            continue
        for guess, target in (op.inputs[:2], op.inputs[1::-1]):
            later = _discounted(flow, target) if flow.step.requires_grad[guess.row] else None
            if later is None or not _trained(flow, guess) & _trained(flow, later[0]):
                continue
            message = (
                f"the target of {op.name} is data plus {later[1]:g} times a result of the network that is trained, and "
                "has a gradient, too: training moves the target to the guess, not the guess to the target alone"
            )
            yield trained_target.finding(message, DETACH, op.op_id, evidence={"discount": later[1]})
            break


def _is_squared(flow: Flow, op: Op) -> bool:
    return any(one.name == "pow" and one.arguments.get("exponent") == 2 for one in flow.readers(op))


def _discounted(flow: Flow, target: Tensor) -> tuple[Tensor, float] | None:
    """Returns what is added to data, with its factor below 1; null where the target is no such sum."""
    needs, total = flow.step.requires_grad, flow.origin(target)
    if total is None or total.name not in ADDS or len(total.inputs) != 2:
        return None
    later = [one for one in total.inputs if needs[one.row]]
    if len(later) != 1:
        return None
    tensor, factor = later[0], 1.0
    while (op := flow.origin(tensor)) is not None and op.name in MULTIPLIES:
        number = op.arguments.get("other") if len(op.inputs) == 1 else 1.0
        inside = [one for one in op.inputs if needs[one.row]]
        if not isinstance(number, int | float) or len(inside) != 1:
            return None
        tensor, factor = inside[0], factor * number
    return (tensor, factor) if LEAST_DISCOUNT <= factor < 1 else None


def _trained(flow: Flow, tensor: Tensor) -> set[int]:
    """Returns the memory of the parameters with a gradient that a tensor was computed of."""
    needs = flow.step.requires_grad
    read = (one for op in flow.made_of(tensor) for one in op.inputs)
    return {one.memory for one in read if one.name is not None and needs[one.row]}
