"""Rules about shapes: sizes that change places, and elements that do not; one row that meets all of another batch."""

from collections.abc import Container, Iterator, Sequence
from itertools import combinations

from nbkit.findings.dataflow.flow import Flow, Op
from nbkit.findings.finding import Finding, rule
from nbkit.ops.families import ARITHMETIC, DIVIDES, FORMS, FUSED_ATTENTION, IDENTITIES, PARTS, RESHAPES, family
from nbkit.step.step import Tensor

SPLIT = (
    "Split the last size in its place, and swap then: x.view(b, t, heads, -1).transpose(1, 2); view and reshape keep "
    "the order of the elements."
)


@rule("warning", rank=110)
def scrambled_view(flow: Flow) -> Iterator[Finding]:
    """A view makes (b, heads, t, d) of (b, t, heads * d) in front of attention, without a transpose."""
    for op in (op for op in flow.ops.values() if op.name.startswith(FUSED_ATTENTION) and op.is_ahead):
        for tensor in op.inputs[:3]:
            view = flow.maker(flow.behind(tensor, IDENTITIES))
            found = None if view is None else _scrambled(view)
            if found is not None:
                yield found


def _scrambled(op: Op) -> Finding | None:
    """Returns what a view mixes: its size of positions moves behind one of heads, and no element moves."""
    if op.name not in RESHAPES or not op.inputs or not op.outputs:
        return None
    before, after = op.inputs[0].shape, op.outputs[0].shape
    if len(before) != 3 or len(after) != 4 or before[0] != after[0] or after[1] <= 1:
        return None
    # (b, t, d) to (b, h, t, d / h) with t > 1; (b, h * t, d) would be another thing.
    if before[1] != after[2] or before[1] <= 1 or before[1] == after[1] or before[2] != after[1] * after[3]:
        return None
    message = (
        f"{op.name} makes {[*after]} of {[*before]} without moving elements: what was position and channel is mixed, "
        "where a view and a transpose would swap the sizes"
    )
    return scrambled_view.finding(message, SPLIT, op.op_id, evidence={"before": before, "after": after})


TURN = "Move the elements: x.transpose(1, 2), x.permute(...), or einops.rearrange; view and reshape keep their order."


@rule("warning", rank=115)
def swapped_sizes(flow: Flow) -> Iterator[Finding]:
    """A view or reshape makes (b, d, t) of a result (b, t, d), or (b, t, heads * d) of (b, heads, t, d), without a
    transpose; not where the sizes are swapped back before anything is computed, as to shift relative positions.
    """
    swaps = {op.op_id: op for op in flow.ops.values() if op.is_ahead and _swaps(op)}
    # Of what nothing computed the shape may be wrong before, and right after.
    swaps = {op_id: op for op_id, op in swaps.items() if flow.origin(op.inputs[0]) is not None}
    pairs = ((op_id, _swap_before(flow, op, swaps)) for op_id, op in swaps.items())
    undone = {each for op_id, before in pairs if before is not None for each in (op_id, before)}
    for op in (op for op_id, op in swaps.items() if op_id not in undone):
        before, after = op.inputs[0].shape, op.outputs[0].shape
        if _may_be_split(before, after):
            continue
        message = (
            f"{op.name} makes {[*after]} of {[*before]} without moving elements: what the sizes stood for is mixed, "
            "where a transpose would swap them"
        )
        yield swapped_sizes.finding(message, TURN, op.op_id, evidence={"before": before, "after": after})


def _swaps(op: Op) -> bool:
    if op.name not in RESHAPES or not op.inputs or not op.outputs:
        return False
    before, after = op.inputs[0].shape, op.outputs[0].shape
    return before[:1] == after[:1] and (_is_swap(before, after) or _merges_others(before, after))


def _swap_before(flow: Flow, op: Op, swaps: Container[int]) -> int | None:
    """Returns the swap of which this one takes nothing but a part, in another form; null if there is none."""
    maker = flow.maker(op.inputs[0])
    while maker is not None and maker.name in FORMS | PARTS and maker.inputs:
        if maker.op_id in swaps:
            return maker.op_id
        maker = flow.maker(maker.inputs[0])
    return None


def _is_swap(before: Sequence[int], after: Sequence[int]) -> bool:
    return len(before) >= 3 and before != after and sorted(before) == sorted(after)


def _may_be_split(before: Sequence[int], after: Sequence[int]) -> bool:
    """Returns whether sizes change places by chance: (t, n, h * d) becomes (t, n * h, d) where a view splits heads."""
    moved = [size for size, other in zip(before, after, strict=False) if size != other]
    return len(before) == len(after) and any(max(pair) % min(pair) == 0 for pair in combinations(moved, 2))


def _merges_others(before: Sequence[int], after: Sequence[int]) -> bool:
    """Returns whether the first and the last of three sizes become one behind the second."""
    if len(before) != 4 or len(after) != 3 or before[1] == before[2] or min(before[1:3]) == 1:
        return False
    return after[1] == before[2] and after[2] == before[1] * before[3]


PAIRED = ARITHMETIC - DIVIDES
# They make features of what is given; behind them a row is a sample.
LAYERS = family("LAYER_PRODUCTS CONVOLUTIONS embedding")
MOST_STEPS = 64
LOOK = "Look at the shapes of the batch: one of its parts may have been put together along the wrong size."


@rule("hint", rank=140)
def lone_row(flow: Flow) -> Iterator[Finding]:
    """(1, d) computed of one row of data is added to (n, d) computed of n rows of other data."""
    for op in flow.ops.values():
        if op.name not in PAIRED or not op.is_ahead or op.module is None or len(op.inputs) != 2:
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
            yield lone_row.finding(message, LOOK, op.op_id, evidence={"shapes": [one.shape, many.shape]})


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
            if is_behind and current.memory not in flow.held and current.shape:
                found.add(current.shape[0])
            continue
        if (maker.op_id, is_behind) in seen:
            continue
        seen.add((maker.op_id, is_behind))
        is_layer = maker.name in LAYERS
        ahead += [(part, is_behind or is_layer) for part in maker.inputs]
    return found
