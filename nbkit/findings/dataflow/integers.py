"""Finds integers that stand for true and false, and are inverted as numbers."""

from collections.abc import Iterator

from nbkit.findings.dataflow.flow import Flow, Op
from nbkit.findings.finding import Finding, rule
from nbkit.ops.families import CASTS, COMPLEMENTS, GATHERS, LOGICAL, MASK_AT, MASKED_FILLS, MULTIPLIES

ADVICE = "Invert truth, not bits: x == 0, x.logical_not(), or ~x.bool()."


@rule("warning", rank=150)
def inverted_integer(flow: Flow) -> Iterator[Finding]:
    """`~` of integers becomes a mask or a factor: ~0 is -1 and ~1 is -2, and both are true."""
    for op in flow.named(*COMPLEMENTS):
        dtype = op.outputs[0].dtype if op.outputs else "bool"
        use = None if dtype == "bool" or not op.is_ahead else _as_truth(flow, op)
        if use is not None:
            zero, one = ("255", "254") if dtype == "uint8" else ("-1", "-2")
            message = (
                f"`~` inverts the bits of {dtype} numbers, and {use.name} takes them as true and false, or as a "
                f"factor: ~0 is {zero} and ~1 is {one}, so that both are true"
            )
            yield inverted_integer.finding(message, ADVICE, op.op_id, evidence={"use_op_id": use.op_id})


def _as_truth(flow: Flow, op: Op) -> Op | None:
    """Returns the first op that takes what an op gave, in whatever form, for true and false, or for a factor."""
    return next((reader for made, reader in flow.uses(op) if reader.outputs and _takes_truth(reader, made)), None)


def _takes_truth(reader: Op, made: Op) -> bool:
    place, dtype = reader.place_of(made.outputs[0].tensor_id), reader.outputs[0].dtype
    is_float = "float" in dtype
    if reader.name in CASTS:
        return dtype == "bool" or is_float
    if reader.name in MASKED_FILLS:
        return place == MASK_AT.get(reader.name, -1)
    is_zero_test = reader.name in ("eq", "ne") and reader.arguments.get("other") == 0
    is_index = reader.name in GATHERS and made.outputs[0].dtype == "uint8" and place > 0
    return is_zero_test or is_index or reader.name in LOGICAL or (reader.name in MULTIPLIES and is_float)
