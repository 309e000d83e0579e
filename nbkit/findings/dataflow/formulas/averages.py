"""Rules about numbers that stand on the wrong side: averages of weights, and a variance that scales noise."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from nbkit.findings.dataflow.flow import Flow, Op
from nbkit.findings.finding import Finding, rule
from nbkit.ops.families import ADDS, FORMS, MULTIPLIES, NORMAL_DRAWS, SUBTRACTS, UPDATES_IN_PLACE
from nbkit.step.step import Tensor

AWAY = (
    "Move it toward the weights: average.lerp_(weight, 1 - decay), or average.add_(weight - average, alpha=1 - decay)."
)
SIDES = "Give the large share to the average: average.mul_(decay).add_(weight, alpha=1 - decay), which is lerp_()."
# What is left of an average at each step; a warm-up changes it.
MOST_LEFT, FEWEST_STEPS = 0.05, 3
MOST_OPS = MOST_DEPTH = 8
Shares = dict[int, float]  # by memory


@rule("warning", rank=190)
def reversed_average(flow: Flow) -> Iterator[Finding]:
    """An average of weights moves away from them at each update, or takes 95 % and more of the new weights in each of
    three steps or more: the shares, or the sign, are exchanged.
    """
    alike: dict[tuple[str, float, float], list[Op]] = defaultdict(list)
    sources, steps = flow.step.ops["source"].tolist(), flow.step.ops["step"].tolist()
    trained = _trained(flow)
    shapes = set(trained.values())
    for op in flow.ops.values():
        is_update = op.name in UPDATES_IN_PLACE and op.phase == "other" and len(op.inputs) == 2 and op.outputs
        if not is_update or op.inputs[0].memory in trained or op.inputs[0].shape not in shapes:
            continue
        shares = _shares(flow, op, steps)
        own, other = op.inputs[0].memory, [memory for memory in shares or {} if memory != op.inputs[0].memory]
        if shares is not None and own in shares and len(other) == 1 and other[0] in trained:
            alike[str(sources[op.op_id]), round(shares[own], 6), round(shares[other[0]], 6)].append(op)
    for (_, kept, new), ops in alike.items():
        met = {steps[op.op_id] for op in ops}
        if kept > 1 and new < 0:
            message = (
                f"an average of weights becomes {kept:g} times itself and {new:g} times the weights at each update: it "
                "moves away from them, and grows without end"
            )
            yield reversed_average.finding(message, AWAY, ops[0].op_id, evidence={"kept": kept, "new": new})
        elif 0 < kept <= MOST_LEFT and new >= 1 - 2 * MOST_LEFT and len(met) >= FEWEST_STEPS:
            message = (
                f"an average of weights takes {new:g} of the new weights and keeps {kept:g} of its own at each update: "
                "it is what the last step left, and averages nothing"
            )
            yield reversed_average.finding(message, SIDES, ops[0].op_id, evidence={"kept": kept, "new": new})


def _trained(flow: Flow) -> dict[int, tuple[int, ...]]:
    """Returns the memory of parameters with a gradient that an optimizer writes to, and their shapes."""
    needs = flow.step.requires_grad
    rows = [one for op in flow.ops.values() if op.is_ahead for one in op.inputs if one.name and needs[one.row]]
    written = {one.memory for op in flow.ops.values() if op.phase == "optimizer" for one in op.outputs}
    return {one.memory: one.shape for one in rows if one.memory in written}


def _shares(flow: Flow, op: Op, steps: Sequence[int], depth: int = MOST_DEPTH) -> Shares | None:
    """Returns what an op gives as a sum of what stood in memories before this step; null where it is no such sum."""
    number = op.arguments.get("other")
    parts = [_before(flow, one, op, steps, depth - 1) for one in op.inputs] if depth else []
    if None in parts or not parts:
        return None
    first, second = parts[0] or {}, parts[1] or {} if len(parts) > 1 else {}
    alpha, name = op.arguments.get("alpha", 1), op.name.removesuffix("_")
    if name == "copy":
        return second
    if name in ("mul", "div") and len(parts) == 1 and isinstance(number, int | float) and number:
        return _sum(first, {}, number if name == "mul" else 1 / number, 0)
    if name == "neg":
        return _sum(first, {}, -1, 0)
    if name == "lerp" and len(parts) == 2 and isinstance(weight := op.arguments.get("weight"), int | float):
        return _sum(first, second, 1 - weight, weight)
    if name in ("add", "sub") and len(parts) == 2 and isinstance(alpha, int | float):
        return _sum(first, second, 1, alpha if name == "add" else -alpha)
    return None


def _before(flow: Flow, tensor: Tensor, reader: Op, steps: Sequence[int], depth: int) -> Shares | None:
    tensor = flow.behind(tensor)
    op = flow.maker(tensor)
    if op is None or op.phase != "other" or steps[op.op_id] != steps[reader.op_id]:
        return {tensor.memory: 1.0}
    return _shares(flow, op, steps, depth)


def _sum(one: Shares, other: Shares, factor: float, times: float) -> Shares:
    return {key: factor * one.get(key, 0) + times * other.get(key, 0) for key in {*one, *other}}


DEVIATION = "Multiply by the deviation: mean + torch.exp(0.5 * log_variance) * torch.randn_like(mean)."


@rule("warning", rank=192)
def variance_as_deviation(flow: Flow) -> Iterator[Finding]:
    """Noise is multiplied by exp(s), and a divergence beside it counts exp(s) as the variance, which is its square."""
    for op in flow.named(*MULTIPLIES):
        for noise, scale in (op.inputs, op.inputs[::-1]) if op.is_ahead and len(op.inputs) == 2 else ():
            draw, made = flow.origin(noise), flow.origin(scale)
            if draw is None or draw.name not in NORMAL_DRAWS or made is None or made.name != "exp":
                continue
            source = flow.behind(made.inputs[0]).tensor_id
            if any(_is_divergence(flow, one, source) for one in flow.named("exp") if one.is_ahead):
                message = (
                    f"the noise of {draw.name} is multiplied by exp() of a tensor {[*made.inputs[0].shape]} whose "
                    "exp() stands for the variance in a divergence: noise is scaled by the deviation, the root of that"
                )
                yield variance_as_deviation.finding(message, DEVIATION, op.op_id, evidence={"exp_op_id": made.op_id})


def _is_divergence(flow: Flow, op: Op, source: int) -> bool:
    """Returns whether exp(s) is added to, or taken from, s itself and a square: 1 + s - mean ** 2 - exp(s)."""
    if flow.behind(op.inputs[0]).tensor_id != source:
        return False
    first = [reader for _, reader in flow.uses(op) if reader.name in ADDS | SUBTRACTS]
    pending, seen, terms = first, {one.op_id for one in first}, list[Tensor]()
    while pending and len(seen) < MOST_OPS:
        current = pending.pop()
        terms += current.inputs
        made = (flow.origin(one) for one in current.inputs)
        near = [one for one in made if one is not None] + flow.readers(current)
        further = [one for one in near if one.name in ADDS | SUBTRACTS and one.op_id not in seen and one.is_ahead]
        seen |= {one.op_id for one in further}
        pending += further
    squares = [flow.origin(one) for one in terms]
    has_square = any(one is not None and (one.name == "pow" or _is_own_product(one)) for one in squares)
    return has_square and any(flow.behind(one, FORMS).tensor_id == source for one in terms)


def _is_own_product(op: Op) -> bool:
    return op.name in MULTIPLIES and len({one.tensor_id for one in op.inputs}) == 1 and len(op.inputs) == 2
