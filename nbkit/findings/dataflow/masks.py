"""Rules about masks: triu or tril hides a position from itself, or shows the next one; a fill that hides nothing."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from nbkit.findings.dataflow.attention import PRODUCTS, is_dropout
from nbkit.findings.dataflow.flow import Flow, Op
from nbkit.findings.finding import Finding, rule
from nbkit.ops.families import (
    ADDS,
    CONSTANTS,
    DIVIDES,
    FORMS,
    FUSED_ATTENTION,
    LOG_SOFTMAX,
    MASK_AT,
    MULTIPLIES,
    SOFTMAX,
    TRIANGLES,
    family,
)
from nbkit.step.step import Tensor

# A score that is lowered by as much has no weight left.
HIDDEN = -1e4
MOST_OPS = 64
# What may give a row other values than attention does.
REPLACING = family("MASKED_FILLS INDEX_PUTS JOINS PARTS MULTIPLIES nan_to_num copy_")
NEARLY_ZERO = 1e-3
FILLED = family("masked_fill")
HIDING = "Fill it with float('-inf'), or with torch.finfo(scores.dtype).min where a row may be hidden as a whole."
KEPT = family("ADDS MULTIPLIES DIVIDES masked_fill baddbmm")
MEANING = (
    "Look at what the mask means here: True hides in masked_fill() and in torch.nn.MultiheadAttention, and "
    "shows in scaled_dot_product_attention()."
)
ADVICE = {
    "upper": "Hide what comes after a position, without the position itself: triu(..., diagonal=1).",
    "lower": MEANING,
}
SHOWN_ADVICE = (
    "Hide it, too: triu(..., diagonal=1), or tril(...) of what is shown. nbkit.leaks(model, batch) says what the "
    "results of a model depend on. Where one step ahead is meant, as in streaming, it is right."
)


class Triangle(NamedTuple):
    """Describes the places (i, j) of a square where a mask is set: j - i >= diagonal above, <= diagonal below.

    `is_hiding`: scores there are lowered already; else the mask is true, or 1, there.
    """

    side: str  # upper or lower
    diagonal: int
    is_hiding: bool = False

    def inverted(self) -> "Triangle":
        if self.side == "upper":
            return self._replace(side="lower", diagonal=self.diagonal - 1)
        return self._replace(side="upper", diagonal=self.diagonal + 1)

    def turned(self) -> "Triangle":
        return self._replace(side="lower" if self.side == "upper" else "upper", diagonal=-self.diagonal)

    @property
    def has_diagonal(self) -> bool:
        return self.diagonal <= 0 if self.side == "upper" else self.diagonal >= 0


@rule("warning", rank=80)
def hidden_diagonal(flow: Flow) -> Iterator[Finding]:
    """A mask of `triu` or `tril` hides each position from itself, so that the first or last one sees none.

    Models that look at earlier positions alone replace what the first one gets, between softmax and product.
    """
    named = set()
    for op, attention, hidden in _masks(flow):
        is_wrong = op.op_id not in named and hidden.has_diagonal
        if is_wrong and (attention.name.startswith(FUSED_ATTENTION) or _is_used_as_it_is(flow, attention)):
            named.add(op.op_id)
            end = "first" if hidden.side == "upper" else "last"
            message = (
                f"the mask of {op.name} hides each position from itself, so that the {end} one sees no position "
                "at all: its weights are NaN, or the same for all positions"
            )
            yield hidden_diagonal.finding(message, ADVICE[hidden.side], op.op_id, evidence=_evidence(op, attention))


@rule("hint", rank=90)
def shown_next(flow: Flow) -> Iterator[Finding]:
    """A mask of `triu` or `tril` hides what comes later, but for the very next position."""
    of_attention: dict[int, list[tuple[Op, Op, Triangle]]] = defaultdict(list)
    for mask in _masks(flow):
        of_attention[mask[1].op_id].append(mask)
    for masks in of_attention.values():
        op, attention, hidden = masks[0]
        if len(masks) == 1 and (hidden.side, hidden.diagonal) == ("upper", 2):
            message = (
                f"the mask of {op.name} hides what comes later, but shows each position the next one: a model that is "
                "to predict it reads the answer"
            )
            yield shown_next.finding(message, SHOWN_ADVICE, op.op_id, evidence=_evidence(op, attention))


@rule("warning", rank=95)
def visible_mask(flow: Flow) -> Iterator[Finding]:
    """A mask fills scores in front of a softmax with a number so near to 0 that it hides nothing: -1e-9 for -1e9."""
    for op in (op for op in flow.ops.values() if op.is_ahead and op.outputs):
        filled = _filled(flow, op)
        softmax = None if filled is None else _softmax_behind(flow, op, filled)
        if filled is not None and softmax is not None:
            message = (
                f"{op.name} puts {filled.value:g} where a mask of shape {[*filled.mask.shape]} is set, before "
                f"{softmax.name.strip('_')}: it hides nothing there, as exp({filled.value:g}) is about 1, like "
                "that of any score near 0"
            )
            evidence = {"softmax_op_id": softmax.op_id, "value": filled.value}
            yield visible_mask.finding(message, HIDING, op.op_id, evidence=evidence)


class Filled(NamedTuple):
    """Describes the number that stands where a mask is set."""

    value: float
    mask: Tensor


def _filled(flow: Flow, op: Op) -> Filled | None:
    """Returns what an op fills in by a mask that does not come of what it fills; null unless it is nearly 0."""
    value, mask = None, op.inputs[MASK_AT.get(op.name, 0)] if len(op.inputs) > MASK_AT.get(op.name, 0) else None
    if op.name in FILLED:
        value = _value(flow, op, 2, "value")
    elif op.name == "where":
        value = next(filter(_is_nearly_zero, (_value(flow, op, 1, "self"), _value(flow, op, 2, "other"))), None)
    elif op.name in MULTIPLIES and len(op.inputs) == 1 and _is_left_out(flow, op.inputs[0]):
        value = op.arguments.get("other")
    number = _number(value)
    if number is None or mask is None or not _is_nearly_zero(number) or (op.name in MULTIPLIES and number > 0):
        return None
    compared = flow.origin(mask)
    of = {flow.behind(one).tensor_id for one in op.inputs if one.dtype != "bool"}
    is_of_itself = compared is not None and any(flow.behind(one).tensor_id in of for one in compared.inputs)
    return None if is_of_itself and op.name in MASK_AT else Filled(number, mask)


def _is_nearly_zero(value: Any) -> bool:
    number = _number(value)
    return number is not None and 0 < abs(number) < NEARLY_ZERO


def _is_left_out(flow: Flow, tensor: Tensor) -> bool:
    """Returns whether a tensor is one minus what was given: a mask of what is to be left out."""
    op = flow.origin(tensor)
    return op is not None and (op.name, op.arguments.get("other")) == ("rsub", 1) and flow.origin(op.inputs[0]) is None


def _softmax_behind(flow: Flow, op: Op, filled: Filled) -> Op | None:
    """Returns the softmax that reads what was filled; null where something between may hide it, or make it larger."""
    pending, seen = [op], {op.op_id}
    while pending and len(seen) < MOST_OPS:
        op = pending.pop()
        for reader in (one for one in flow.readers(op) if one.is_ahead and one.outputs and one.op_id not in seen):
            seen.add(reader.op_id)
            if reader.name in SOFTMAX | LOG_SOFTMAX:
                return reader if _differs_along(filled.mask, reader) else None
            if reader.name.startswith(FUSED_ATTENTION):
                return reader if reader.place_of(op.outputs[0].tensor_id) > 2 else None  # none of q, k, v
            if _keeps_small(flow, reader, op.outputs[0].tensor_id):
                pending.append(reader)
    return None


def _differs_along(mask: Tensor, softmax: Op) -> bool:
    """Returns whether a mask has more than one element along the dimension of a softmax: else it fills whole rows."""
    count, dim = len(softmax.inputs[0].shape), softmax.arguments.get("dim", -1)
    at = count - dim % count if isinstance(dim, int) and count else 0  # from the end
    return 0 < at <= len(mask.shape) and mask.shape[-at] != 1


def _keeps_small(flow: Flow, op: Op, tensor_id: int) -> bool:
    """Returns whether what is filled in stays as it is: in another form, scaled down, or added to scores."""
    if op.name in FORMS:
        return True
    if op.name in ADDS and len(op.inputs) == 2:
        other = flow.origin(op.inputs[1 - op.place_of(tensor_id)])
        return other is not None and other.name not in REPLACING
    factor = _number(op.arguments.get("other")) if len(op.inputs) == 1 else None
    is_smaller = factor is not None and (abs(factor) <= 1 if op.name in MULTIPLIES else abs(factor) >= 1)
    return is_smaller and op.name in MULTIPLIES | DIVIDES


def _masks(flow: Flow) -> Iterator[tuple[Op, Op, Triangle]]:
    """Yields each op that makes a triangle, with the attention that it reaches, and what it hides there."""
    for op in flow.named(*TRIANGLES):
        triangle = _made(flow, op)
        if triangle is not None:
            yield from ((op, attention, hidden) for attention, hidden in _attentions(flow, op, triangle))


def _evidence(op: Op, attention: Op) -> dict[str, Any]:
    return {"attention_op_id": attention.op_id, "diagonal": op.arguments.get("diagonal", 0)}


def _made(flow: Flow, op: Op) -> Triangle | None:
    """Returns what triu or tril makes of ones, or of what hides."""
    full = flow.origin(op.inputs[0]) if op.inputs else None
    if full is None or full.name not in CONSTANTS or not op.outputs or not _is_square(op.outputs[0]):
        return None
    value = 1.0 if "ones" in full.name else _number(full.arguments.get("fill_value"))
    triangle = Triangle("upper" if op.name.startswith("triu") else "lower", int(op.arguments.get("diagonal", 0)))
    if value is None or not (value == 1 or value <= HIDDEN):
        return None
    return triangle._replace(is_hiding=value <= HIDDEN)


def _attentions(flow: Flow, op: Op, triangle: Triangle) -> Iterator[tuple[Op, Triangle]]:
    """Yields softmaxes and fused attention that a mask reaches, with what it hides there."""
    pending, seen = [(op, triangle)], {op.op_id}
    while pending and len(seen) < MOST_OPS:
        op, triangle = pending.pop()
        for reader in flow.readers(op):
            if not reader.is_ahead or reader.op_id in seen:
                continue
            seen.add(reader.op_id)
            is_end = reader.name in SOFTMAX or reader.name.startswith(FUSED_ATTENTION)
            if is_end and triangle.is_hiding:
                yield reader, triangle
            after = (
                None
                if is_end or not reader.outputs or not _is_square(reader.outputs[0])
                else (_after(flow, reader, op.outputs[0].tensor_id, triangle))
            )
            if after is not None:
                pending.append((reader, after))


def _after(flow: Flow, op: Op, tensor_id: int, triangle: Triangle) -> Triangle | None:
    """Returns what an op makes of the mask; null where that is not known."""
    place = op.place_of(tensor_id)
    if op.name in ("t", "transpose"):
        return triangle.turned() if _swaps_last(op) else triangle
    if op.name in FORMS:
        return triangle
    if triangle.is_hiding:
        return triangle if op.name in KEPT else None
    if op.name in ("masked_fill", "masked_fill_") and place == 1:
        return _hiding(triangle, op.arguments.get("value"))
    if op.name == "where" and place == 0:
        one, other = (_value(flow, op, at, name) for at, name in ((1, "self"), (2, "other")))
        return _hiding(triangle, one) or _hiding(triangle.inverted(), other)
    if op.name == "mul" and len(op.inputs) == 1:
        return _hiding(triangle, op.arguments.get("other"))
    return _compared(op, triangle)


def _compared(op: Op, triangle: Triangle) -> Triangle | None:
    other = _number(op.arguments.get("other")) if len(op.inputs) == 1 else None
    if op.name in ("logical_not", "bitwise_not") or (op.name, other) in (("eq", 0), ("ne", 1), ("rsub", 1), ("lt", 1)):
        return triangle.inverted()
    if (op.name, other) in (("eq", 1), ("ne", 0), ("gt", 0)):
        return triangle
    return None


def _hiding(triangle: Triangle, value: Any) -> Triangle | None:
    number = _number(value)
    return triangle._replace(is_hiding=True) if number is not None and number <= HIDDEN else None


def _value(flow: Flow, op: Op, place: int, name: str) -> Any:
    """Returns the number that where() takes on one side; null of a tensor whose values are not known."""
    if name in op.arguments:
        return op.arguments[name]
    maker = flow.maker(op.inputs[place]) if len(op.inputs) > place else None
    known = {"scalar_tensor": "s", "full": "fill_value"}
    return maker.arguments.get(known[maker.name]) if maker is not None and maker.name in known else None


def _number(value: Any) -> float | None:
    try:
        return None if value is None else float(value)
    except (TypeError, ValueError):
        return None


def _is_square(tensor: Tensor) -> bool:
    return len(tensor.shape) >= 2 and tensor.shape[-1] == tensor.shape[-2] > 1


def _swaps_last(op: Op) -> bool:
    count = len(op.inputs[0].shape) if op.inputs else 0
    dims = {int(op.arguments.get(name, default)) % max(count, 1) for name, default in (("dim0", -2), ("dim1", -1))}
    return dims == {count - 1, count - 2}


def _is_used_as_it_is(flow: Flow, softmax: Op) -> bool:
    """Returns whether a product reads the weights, and nothing could replace a row of them, or of what it gives."""
    pending, has_product = [(softmax, False)], False
    for _ in range(MOST_OPS):
        if not pending:
            break
        op, is_behind = pending.pop()
        for reader in (reader for reader in flow.readers(op) if reader.is_ahead and reader.outputs):
            place = reader.place_of(op.outputs[0].tensor_id)
            is_form = reader.name in FORMS or is_dropout(flow, reader, place)
            if reader.name in REPLACING and not is_form:
                return False
            is_product = reader.name in PRODUCTS and not is_behind
            has_product |= is_product
            if is_form or is_product:
                pending.append((reader, is_behind or is_product))
    return has_product
