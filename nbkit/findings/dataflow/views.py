"""Rule about views: sizes that change places without the elements doing so."""

from collections.abc import Iterator

from nbkit.findings.dataflow.flow import Flow, Op
from nbkit.findings.dataflow.found import Found
from nbkit.ops.families import FUSED_ATTENTION, RESHAPES, SAME

ADVICE = (
    "Split the last size in its place, and swap then: x.view(b, t, heads, -1).transpose(1, 2); view and reshape keep "
    "the order of the elements."
)


def scrambled_heads(flow: Flow) -> Iterator[Found]:
    """Finds (b, t, d) that a view makes (b, heads, t, d / heads) of, in front of attention: positions are mixed."""
    for op in (op for op in flow.ops.values() if op.name.startswith(FUSED_ATTENTION) and op.is_ahead):
        for tensor in op.inputs[:3]:
            view = flow.maker(flow.behind(tensor, SAME))
            found = None if view is None else _scrambled(view)
            if found is not None:
                yield found


def _scrambled(op: Op) -> Found | None:
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
    return Found("scrambled_view", "warning", message, ADVICE, op, {"before": before, "after": after})
