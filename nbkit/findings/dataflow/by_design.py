"""Tells gradients that are zero by the step's own form: a softmax over one key, inputs that no parameter makes."""

from collections.abc import Iterable

from nbkit.findings.dataflow.flow import Flow, Op
from nbkit.ops.families import FORMS, FUSED_ATTENTION, SOFTMAX, family
from nbkit.step.step import Tensor

MOST_OPS = 2_000
FACTOR_OPS = family("PRODUCTS CONVOLUTIONS")
# They give numbers of their own, whatever tensor says their shape.
MADE = family("CONSTANTS RANGES lift_fresh_copy")
ONE_KEY = ": they only reach a softmax over one position, which is 1 whatever they are"
EQUAL = ": the values that they choose between are equal, as what those are made of is 0"
FIXED = ": what goes into {it} is 0, and no parameter makes it"


def by_design(flow: Flow, names: Iterable[str], trained: frozenset[str], fed_zero: frozenset[str]) -> str | None:
    """Returns why the gradients of all these parameters are zero in a right step; null where that is not sure.

    `trained` are all parameters of the model, `fed_zero` those of these that a bias with a gradient stands beside.
    """
    reasons = {name: _reason(flow, name, trained, fed_zero) for name in names}
    if not reasons or None in reasons.values():
        return None
    first = next((reason for reason in (ONE_KEY, FIXED, EQUAL) if reason in reasons.values()), None)
    return None if first is None else first.format(it="it" if len(reasons) == 1 else "them")


def _reason(flow: Flow, name: str, trained: frozenset[str], fed_zero: frozenset[str]) -> str | None:
    """Follows a parameter ahead: each way must end where nothing of it can show."""
    pending = [op for op in flow.ops.values() if op.is_ahead and any(one.name == name for one in op.inputs)]
    seen, found, is_first = {op.op_id for op in pending}, set(), {op.op_id for op in pending}
    while pending and len(seen) < MOST_OPS:
        op = pending.pop()
        ended = _ended(flow, op, trained, fed_zero)
        if ended is None and op.op_id in is_first and _is_fed_zero(flow, op, trained, fed_zero & {name}):
            ended = FIXED
        if ended is not None:
            found.add(ended)
            continue
        following = [reader for reader in flow.readers(op) if reader.op_id not in seen]
        if any(reader.phase == "backward" and reader.name == "ones_like" for reader in following):
            return None
        seen |= {reader.op_id for reader in following}
        ahead = [reader for reader in following if reader.is_ahead]
        if op.name in FORMS or op.name.startswith("_weight_norm"):
            is_first |= {reader.op_id for reader in ahead}
        pending += ahead
    return None if pending or not found else next(one for one in (FIXED, ONE_KEY, EQUAL) if one in found)


def _ended(flow: Flow, op: Op, trained: frozenset[str], fed_zero: frozenset[str]) -> str | None:
    """Returns why an attention gives the same whatever its scores are."""
    if op.name.startswith(FUSED_ATTENTION) and len(op.inputs) >= len("qkv"):
        if op.inputs[1].shape[-2:-1] == (1,):
            return ONE_KEY
        values = flow.origin(op.inputs[2])
        return EQUAL if values is not None and _is_fed_zero(flow, values, trained, fed_zero) else None
    if op.name in SOFTMAX and op.inputs:
        dim = op.arguments.get("dim", -1)
        shape = op.inputs[0].shape
        return ONE_KEY if isinstance(dim, int) and -len(shape) <= dim < len(shape) and shape[dim] == 1 else None
    return None


def _is_fed_zero(flow: Flow, op: Op, trained: frozenset[str], fed_zero: frozenset[str]) -> bool:
    """Returns whether a product with one of `fed_zero` reads one thing beside, and no trained parameter made that."""
    names = [_names(flow, one) for one in op.inputs] if op.name in FACTOR_OPS else []
    data = [one for one, of in zip(op.inputs, names, strict=False) if not of & trained]
    return any(of & fed_zero for of in names) and len(data) == 1 and _is_fixed(flow, data[0], trained)


def _names(flow: Flow, tensor: Tensor) -> set[str | None]:
    """Returns the parameter that a tensor is, or those that a weight norm makes it of."""
    behind = flow.behind(tensor)
    maker = flow.maker(behind)
    is_norm = maker is not None and maker.name.startswith("_weight_norm")
    return {behind.name, *(one.name for one in maker.inputs if is_norm)} if maker is not None else {behind.name}


def _is_fixed(flow: Flow, tensor: Tensor, trained: frozenset[str]) -> bool:
    """Returns whether no trained parameter is among what a value was computed from; integers are choices, no values."""
    pending, seen = [tensor], 0
    while pending and seen < MOST_OPS:
        one = pending.pop()
        seen += 1
        if one.name in trained:
            return False
        op = flow.maker(one)
        if op is not None and op.name not in MADE:
            pending += [each for each in op.inputs if "float" in each.dtype]
    return not pending
