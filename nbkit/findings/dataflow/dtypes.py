"""Rules about dtypes: positions that one cannot tell apart, a product that autocast does not reach."""

from collections.abc import Iterator

from nbkit.findings.dataflow.flow import Flow, Op
from nbkit.findings.finding import Finding, rule
from nbkit.ops.families import CONVOLUTIONS, PERMUTES, PRODUCTS

# The greatest integer up to which a dtype holds all of them.
EXACT_TO = {"bfloat16": 256, "float16": 2048}


@rule("warning", rank=50)
def rounded_positions(flow: Flow) -> Iterator[Finding]:
    """Positions are in a dtype that cannot tell them apart."""
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
        yield rounded_positions.finding(message, advice, op.op_id, evidence={"count": made.numel, "exact_to": exact})


def _is_count(flow: Flow, op: Op) -> bool:
    """Returns whether an op gives 0, 1, 2, ...: arange() itself, or a cast of what it gave."""
    source = op if op.name == "arange" else flow.origin(op.inputs[0]) if op.inputs else None
    return source is not None and source.name == "arange" and source.arguments.get("step", 1) == 1


HALF = ("bfloat16", "float16")
# So many products must be cast for one that is not to be the exception.
FEWEST = 2
ADVICE = (
    "If it is to be fast, let it run under the same autocast: no autocast(enabled=False) around it, and no op or "
    "transform that autocast does not know. Nothing, if it needs float32."
)


@rule("hint", rank=130)
def outside_autocast(flow: Flow) -> Iterator[Finding]:
    """A matrix product of a module is in float32, where most others are cast by autocast."""
    found = flow.named(*PRODUCTS, *CONVOLUTIONS)
    products = [op for op in found if op.is_ahead and op.module is not None and op.outputs]
    narrow = [op for op in products if op.outputs[0].dtype in HALF]
    wide = [
        op for op in products if op.outputs[0].dtype == "float32" and all(part.dtype == "float32" for part in op.inputs)
    ]
    if len(narrow) < max(FEWEST, len(wide)) or not any(_is_cast(flow, op) for op in narrow):
        return
    half = narrow[0].outputs[0].dtype
    for op in wide:
        message = (
            f"{op.name} computes in float32, where {len(narrow)} of {len(products)} matrix products are in {half}: "
            "autocast does not reach it"
        )
        yield outside_autocast.finding(
            message, ADVICE, op.op_id, evidence={"narrow": len(narrow), "products": len(products)}
        )


def _is_cast(flow: Flow, op: Op) -> bool:
    """Returns whether a weight of float32 was cast for an op."""
    for tensor in op.inputs:
        maker = flow.maker(flow.behind(tensor, PERMUTES))
        if maker is None or maker.name != "_to_copy" or maker.op_id in flow.asked or not maker.inputs:
            continue
        given = maker.inputs[0]
        if given.dtype == "float32" and given.memory in flow.held:
            return True
    return False
