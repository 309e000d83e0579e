"""Rule about positions: integers in a dtype that cannot tell them apart."""

from collections.abc import Iterator

from nbkit.findings.dataflow.flow import Flow, Op
from nbkit.findings.dataflow.found import Found

# The greatest integer up to which a dtype holds all of them.
EXACT_TO = {"bfloat16": 256, "float16": 2048}


def rounded_positions(flow: Flow) -> Iterator[Found]:
    """Finds positions that are counted in half precision, beyond what it holds exactly."""
    for op in flow.named("arange", "_to_copy"):
        made = op.outputs[0] if op.outputs else None
        if (
            made is None
            or made.dtype not in EXACT_TO
            or made.numel <= EXACT_TO[made.dtype] + 1
            or not _is_count(flow, op)
        ):
            continue
        exact = EXACT_TO[made.dtype]
        message = (
            f"{made.numel:,} positions are held in {made.dtype}, which tells integers apart only up to {exact:,}: "
            f"later positions fall together"
        )
        advice = "Keep positions in float32 or int64, and cast what is computed of them."
        yield Found("rounded_positions", "warning", message, advice, op, {"count": made.numel, "exact_to": exact})


def _is_count(flow: Flow, op: Op) -> bool:
    """Returns whether an op gives 0, 1, 2, ...: arange() itself, or a cast of what it gave."""
    source = op if op.name == "arange" else flow.origin(op.inputs[0]) if op.inputs else None
    return source is not None and source.name == "arange" and source.arguments.get("step", 1) == 1
