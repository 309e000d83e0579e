"""Rule about batches: one row of a batch that meets each row of another."""

from collections.abc import Iterator

from nbkit.findings.dataflow.flow import Flow, Tensor
from nbkit.findings.dataflow.found import Found
from nbkit.ops.families import ARITHMETIC, CONVOLUTIONS, DIVIDES, LAYER_PRODUCTS

# They make features of what is given; behind them a row is a sample.
LAYERS = LAYER_PRODUCTS | CONVOLUTIONS | {"embedding"}
MOST_STEPS = 64
ADVICE = "Look at the shapes of the batch: one of its parts may have been put together along the wrong size."


def lone_rows(flow: Flow) -> Iterator[Found]:
    """Finds (1, d) computed of one row of data, added to or multiplied by (n, d) computed of n rows of other data."""
    for op in flow.ops.values():
        if op.name not in ARITHMETIC - DIVIDES or not op.is_ahead or op.module is None or len(op.inputs) != 2:
            continue
        one, many = sorted(op.inputs, key=lambda tensor: tensor.numel)
        if len(one.shape) < 2 or len(one.shape) != len(many.shape) or one.shape[0] != 1 or many.shape[0] <= 1:
            continue
        given, others = _data(flow, one), _data(flow, many)
        if one.shape[1:] == many.shape[1:] and given == {1} and many.shape[0] in others and 1 not in others:
            message = (
                f"{op.name} of shapes {[*op.inputs[0].shape]} and {[*op.inputs[1].shape]}: one row of data meets all "
                f"{many.shape[0]} rows of other data"
            )
            yield Found("lone_row", "hint", message, ADVICE, op, {"shapes": [one.shape, many.shape]})


def _data(flow: Flow, tensor: Tensor) -> set[int]:
    """Returns how many rows the data have that a tensor was computed of by layers; nothing where there are none.

    Data are what no op made and no model holds: not parameters, buffers (position ids) or arange().
    """
    found: set[int] = set()
    seen: set[tuple[int, bool]] = set()
    ahead = [(tensor, False)]
    while ahead and len(seen) < MOST_STEPS:
        current, is_behind = ahead.pop()
        maker = flow.maker(current)
        if maker is None:
            if is_behind and current.storage_id not in flow.held and current.shape:
                found.add(current.shape[0])
            continue
        if (maker.op_id, is_behind) in seen:
            continue
        seen.add((maker.op_id, is_behind))
        is_layer = maker.name in LAYERS
        ahead += [(part, is_behind or is_layer) for part in maker.inputs]
    return found
