"""Rules about targets of losses of classes: a model that sees what it is to predict, labels that resizing blends."""

from collections.abc import Iterator

from nbkit.findings.dataflow.attention import is_dropout
from nbkit.findings.dataflow.flow import Flow, Op
from nbkit.findings.finding import Finding, rule
from nbkit.ops.families import (
    CLASS_LOSSES,
    FACTORS,
    FORMS,
    FUSED_ATTENTION,
    INTERPOLATIONS,
    MULTIPLIES,
    PRODUCTS,
    SOFTMAX,
    UNFILLED,
    family,
)
from nbkit.step.reachable import reachable
from nbkit.step.step import Tensor

CAUSAL = (
    "Give the attention a causal mask: is_causal=True of scaled_dot_product_attention(), or "
    "nn.Transformer.generate_square_subsequent_mask(length) as tgt_mask. nbkit.leaks(model, batch) says what the "
    "results of a model depend on."
)
MOST_OPS = 4_000
# Between the product of queries and keys and its softmax, where no mask is.
UNMASKED = family("FORMS MULTIPLIES DIVIDES")
# Fewer positions may well be another size of the model.
FEWEST_POSITIONS = 3


@rule("warning", rank=35)
def unmasked_targets(flow: Flow) -> Iterator[Finding]:
    """A model reads `ids[:, :-1]` and is to predict `ids[:, 1:]`, and its attention has no mask: it sees the answer.

    Silent where anything in the step is causal, or any attention among these positions has a mask.
    """
    for loss in () if flow.is_causal else flow.named(*CLASS_LOSSES):
        target = _cut(flow, loss.inputs[1]) if loss.is_ahead and len(loss.inputs) > 1 else None
        if target is None or target.arguments.get("start") != 1:
            continue
        for lookup in flow.named("embedding"):
            read = _cut(flow, lookup.inputs[1]) if lookup.is_ahead and lookup.op_id < loss.op_id else None
            attention = None if read is None else _attention(flow, lookup, loss, target, read)
            if attention is not None:
                length = target.outputs[0].shape[-1]
                message = (
                    f"the loss predicts tokens 1 to {length} of a sequence from its tokens 0 to {length - 1}, and "
                    f"{attention.name.strip('_')} lets each position see all {length}, with no causal mask: the model "
                    "sees the next token, which it is to predict"
                )
                evidence = {"loss_op_id": loss.op_id, "embedding_op_id": lookup.op_id}
                yield unmasked_targets.finding(message, CAUSAL, attention.op_id, evidence=evidence)
                break


SHIFT = (
    "Shift once: a model that gets labels beside its tokens mostly shifts them itself (transformers: labels=input_ids)."
)


@rule("warning", rank=36)
def shifted_twice(flow: Flow) -> Iterator[Finding]:
    """A causal model is to predict the token after the next: its labels are shifted before the loss and in it; not
    beside a loss of the next token.
    """
    losses = [op for op in flow.named(*CLASS_LOSSES) if op.is_ahead and len(op.inputs) > 1]
    shifts = {op.op_id: _shifts(flow, op.inputs[1], 1) for op in losses} if flow.is_causal else {}
    read = {_shifts(flow, op.inputs[1], 0)[1] for op in flow.named("embedding") if op.is_ahead} if shifts else set()
    for op_id, (count, ids) in shifts.items():
        if count == 2 and ids in read and (1, ids) not in shifts.values():
            message = (
                "the targets of the loss are the tokens two places after those that the embedding reads: they are "
                "shifted twice, and the model learns to predict the token after the next"
            )
            yield shifted_twice.finding(message, SHIFT, op_id)


def _shifts(flow: Flow, tensor: Tensor, start: int) -> tuple[int, tuple[object, ...]]:
    """Returns how often one token was cut from the begin (`start` is 1) or the end of ids, and what tells these."""
    count = 0
    while (cut := _cut(flow, tensor)) is not None and cut.arguments.get("start", 0) == start:
        padded = flow.origin(cut.inputs[0])
        is_padded = padded is not None and padded.name == "constant_pad_nd"  # one ignored at the end
        count, tensor = count + 1, padded.inputs[0] if padded is not None and is_padded else cut.inputs[0]
    return count, flow.values_of(flow.behind(tensor))


def _cut(flow: Flow, tensor: Tensor) -> Op | None:
    """Returns the slice that a tensor is, of one element less in the last dimension; null if it is none."""
    op = flow.origin(tensor)
    if op is None or op.name != "slice" or len(op.inputs[0].shape) != 2 or op.arguments.get("step", 1) != 1:
        return None
    (before, after), dim = (one[0].shape for one in (op.inputs, op.outputs)), int(op.arguments.get("dim", 0)) % 2
    is_whole = flow.behind(tensor).numel == tensor.numel
    return op if dim == 1 and is_whole and after[1] == before[1] - 1 >= FEWEST_POSITIONS else None


def _attention(flow: Flow, lookup: Op, loss: Op, target: Op, read: Op) -> Op | None:
    """Returns the first self-attention from a lookup to a loss; null where one has a mask, or could be over others."""
    rows, length = target.outputs[0].shape
    is_same = flow.values_of(target.inputs[0]) == flow.values_of(read.inputs[0])
    if not is_same or read.arguments.get("start", 0) != 0 or rows == length:
        return None
    ahead = _ahead(flow, lookup)
    if loss.op_id not in ahead:
        return None
    found = [op for op in map(flow.ops.__getitem__, sorted(ahead)) if op.op_id < loss.op_id]
    attentions = [(op, is_masked) for op in found for is_masked in _self_attention(flow, op, ahead, length)]
    return None if any(is_masked for _, is_masked in attentions) or not attentions else attentions[0][0]


def _ahead(flow: Flow, op: Op) -> set[int]:
    """Returns the ops that depend on what an op gave."""
    met = set()
    for op_id in reachable([op.op_id], lambda one: [to.op_id for to in flow.readers(flow.ops[one]) if to.is_ahead]):
        met.add(op_id)
        if len(met) >= MOST_OPS:
            break
    return met


def _self_attention(flow: Flow, op: Op, ahead: set[int], length: int) -> Iterator[bool]:
    """Yields whether the attention that an op is, of as many queries and keys that are both of `ahead`, has a mask."""
    if op.name.startswith(FUSED_ATTENTION) and len(op.inputs) >= len("qkv"):
        if all(_is_of(flow, one, ahead) and one.shape[-2:-1] == (length,) for one in op.inputs[:2]):
            yield len(op.inputs) > len("qkv")
    elif op.name in SOFTMAX and op.inputs and op.inputs[0].shape[-2:] == (length, length):
        product = flow.maker(flow.behind(op.inputs[0], UNMASKED))
        if product is None or product.name not in PRODUCTS:
            yield True
        elif all(_is_of(flow, product.inputs[place], ahead) for place in FACTORS[product.name]):
            yield not all(_keeps(flow, made, reader) for made, reader in flow.uses(op, FORMS | MULTIPLIES))


def _keeps(flow: Flow, made: Op, reader: Op) -> bool:
    """Returns whether weights go on as they are: a mask may weigh them, too."""
    is_plain = reader.name in FORMS | PRODUCTS | UNFILLED  # memory for a dropout
    return is_plain or is_dropout(flow, reader, reader.place_of(made.outputs[0].tensor_id))


def _is_of(flow: Flow, tensor: Tensor, ahead: set[int]) -> bool:
    maker = flow.maker(tensor)
    return maker is not None and maker.op_id in ahead


ROUNDED = family("FORMS PARTS CASTS CLAMPS round floor")
NEAREST = (
    "Resize labels with mode='nearest' (or 'nearest-exact'), which invents no class. Nothing, if the classes are steps "
    "of one quantity, as gray values or depths are."
)
TWO = 2


@rule("hint", rank=37)
def blended_labels(flow: Flow) -> Iterator[Finding]:
    """Labels of three classes or more are resized by interpolation and cast to integers: between two lie other classes.

    Of two classes there is none between.
    """
    for loss in flow.named(*CLASS_LOSSES):
        if not loss.is_ahead or len(loss.inputs) < TWO or loss.inputs[0].shape[1:2] <= (TWO,):
            continue
        resize = flow.maker(flow.behind(loss.inputs[1], ROUNDED))
        if resize is not None and resize.name in INTERPOLATIONS and _is_blending(resize):
            before, after = (one[0].shape for one in (resize.inputs, resize.outputs))
            way = resize.name.strip("_").removeprefix("upsample_").removesuffix("_aa").rstrip("123d")
            message = (
                f"the targets of the loss are labels that {resize.name} resizes from {[*before]} to {[*after]}, and a "
                f"cast makes integers again: {way} blends classes, so that between two of the "
                f"{loss.inputs[0].shape[1]} lie others that no label has there"
            )
            yield blended_labels.finding(message, NEAREST, resize.op_id, evidence={"loss_op_id": loss.op_id})


def _is_blending(op: Op) -> bool:
    """Returns whether what a resize gives lies between elements: not where each is the middle of an odd number."""
    pairs = zip(op.inputs[0].shape[2:], op.outputs[0].shape[2:], strict=True)
    return not all(before % after == 0 and before // after % 2 == 1 for before, after in pairs)
