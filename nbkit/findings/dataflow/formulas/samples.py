"""Rules about the samples of a batch that are taken for positions: by a recurrence, an attention, a table."""

from collections.abc import Iterator

from nbkit.findings.dataflow.attention import PRODUCTS
from nbkit.findings.dataflow.flow import Flow, Op
from nbkit.findings.finding import Finding, rule
from nbkit.ops.families import (
    ADDS,
    CLASS_LOSSES,
    FACTORS,
    FORMS,
    FUSED_ATTENTION,
    LAYER_PRODUCTS,
    PARTS,
    SOFTMAX,
    family,
)
from nbkit.step.step import Tensor

FIRST = "Pass batch_first=True, or bring positions first: x.transpose(0, 1)."
SCALED = family("FORMS PARTS MULTIPLIES DIVIDES")
LSTM = "mkldnn_rnn_layer"


@rule("warning", rank=66)
def mixed_samples(flow: Flow) -> Iterator[Finding]:
    """An LSTM or an attention that expects positions first gets the batch first: it goes over the samples, of which
    the loss has one label each.
    """
    labels = {op.inputs[1].shape for op in flow.named(*CLASS_LOSSES) if op.is_ahead and len(op.inputs) > 1}
    if len(labels) != 1 or len(shape := labels.pop()) != 1 or shape[0] <= 1:
        return
    count = shape[0]
    for op in flow.ops.values():
        given = _given(flow, op) if op.is_ahead and op.inputs else None
        if given is None or len(given.shape) != 3 or given.shape[0] != count:
            continue
        others = given.shape[1]
        if others > 1 and others % count:
            what = "LSTM" if op.name == LSTM else "attention"
            message = (
                f"{what} takes dimension 0 of {[*given.shape]} for positions, and it is the batch: the loss has "
                f"{count} labels, one for each of its {count} rows. Samples reach each other, and the {others} "
                "positions of a sample do not"
            )
            yield mixed_samples.finding(message, FIRST, op.op_id, evidence={"shape": [*given.shape]})


POSITIONS = "Make the table (1, positions, width), and take x.shape[1] rows of it: x + table[:, : x.shape[1]]."


@rule("warning", rank=67)
def numbered_samples(flow: Flow) -> Iterator[Finding]:
    """As many rows of a table of positions as there are samples are added, one to each sample, where attention goes
    over the other dimension.
    """
    for op in flow.named(*ADDS):
        for x, part in (op.inputs, op.inputs[::-1]) if op.is_ahead and len(op.inputs) == 2 else ():
            if len(x.shape) != 3 or part.shape != (x.shape[0], 1, x.shape[2]) or x.shape[0] == 1:
                continue
            table = flow.behind(part, FORMS | PARTS)
            is_table = table.memory in flow.held and table.numel > part.numel
            lengths = {*filter(None, map(_length, flow.ops.values()))} if is_table else set()
            if x.shape[1] in lengths and x.shape[0] not in lengths:
                message = (
                    f"{x.shape[0]} rows of the table {[*table.shape]} are added to {[*x.shape]} along dimension 0, "
                    f"which is the batch, as attention is over the {x.shape[1]} positions of dimension 1: each sample "
                    "gets a number, and its positions get none"
                )
                yield numbered_samples.finding(message, POSITIONS, op.op_id, evidence={"table": table.name})


def _length(op: Op) -> int | None:
    """Returns over how many positions an attention of all with all is."""
    is_attention = op.is_ahead and (op.name.startswith(FUSED_ATTENTION) or op.name in SOFTMAX)
    shape = op.inputs[0].shape if is_attention and op.inputs else ()
    if len(shape) < 3 or (op.name in SOFTMAX and shape[-2] != shape[-1]):
        return None
    return shape[-2]


def _given(flow: Flow, op: Op) -> Tensor | None:
    """Returns what an LSTM reads, or what the queries of an attention over as many positions are made of."""
    if op.name == LSTM:
        return op.inputs[0] if op.arguments.get("batch_first") is False else None
    query = None
    if op.name.startswith(FUSED_ATTENTION) and len(op.inputs[0].shape) == 4:
        query, length = op.inputs[0], op.inputs[0].shape[-2]
    elif op.name in SOFTMAX and op.inputs[0].shape[-2:-1] == op.inputs[0].shape[-1:]:
        product, length = flow.maker(flow.behind(op.inputs[0], SCALED)), op.inputs[0].shape[-1]
        if product is not None and product.name in PRODUCTS:
            query = product.inputs[FACTORS[product.name][0]]
    if query is None:
        return None
    layer = flow.maker(flow.behind(query, SCALED))
    while layer is not None and layer.name in ADDS and any(one.name for one in layer.inputs[1:]):  # a bias
        layer = flow.maker(flow.behind(layer.inputs[0], SCALED))
    if layer is None or layer.name not in LAYER_PRODUCTS:
        return None
    given = layer.inputs[FACTORS[layer.name][0]]
    while len(given.shape) != 3 and (form := flow.maker(given)) is not None and form.name in FORMS:
        given = form.inputs[0]
    return given if given.shape[:1] == (length,) else None
