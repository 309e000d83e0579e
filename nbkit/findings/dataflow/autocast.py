"""Rule about autocast: a product in float32 among others that autocast casts."""

from collections.abc import Iterator

from nbkit.findings.dataflow.flow import Flow, Op
from nbkit.findings.dataflow.found import Found
from nbkit.ops.families import CONVOLUTIONS, PERMUTES, PRODUCTS

HALF = ("bfloat16", "float16")
# So many products must be cast for one that is not to be the exception.
FEWEST = 2
ADVICE = (
    "If it is to be fast, let it run under the same autocast: no autocast(enabled=False) around it, and no op or "
    "transform that autocast does not know. Nothing, if it needs float32."
)


def outside_autocast(flow: Flow) -> Iterator[Found]:
    """Finds matrix products of a module in float32, where most others of the recording were cast by autocast."""
    products = [
        op for op in flow.named(*PRODUCTS, *CONVOLUTIONS) if op.is_ahead and op.module is not None and op.outputs
    ]
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
        yield Found("outside_autocast", "hint", message, ADVICE, op, {"narrow": len(narrow), "products": len(products)})


def _is_cast(flow: Flow, op: Op) -> bool:
    """Returns whether a weight of float32 was cast for an op."""
    for tensor in op.inputs:
        maker = flow.maker(flow.behind(tensor, PERMUTES))
        if maker is None or maker.name != "_to_copy" or maker.op_id in flow.asked or not maker.inputs:
            continue
        given = maker.inputs[0]
        if given.dtype == "float32" and given.storage_id in flow.held:
            return True
    return False
