"""Finds additions that a pass fused into another op: it reads one tensor more than its line in the listing says."""

from collections.abc import Mapping

from nbkit.ops.kinds import PASSING, op_kind
from nbkit.readers.oneflow.log.runs import Run
from nbkit.readers.oneflow.names import CASTS
from nbkit.readers.oneflow.text.operator_line import CompiledOp
from nbkit.readers.oneflow.text.traced import TracedOp

ADDITION = "add_n"
ADDED = "_add_to_output"  # what OneFlow calls that input


def hidden_inputs(run: Run) -> dict[str, list[dict[str, str]]]:
    """Returns by op the traced additions that it computes as well, each with the tensor that it adds to its result.

    FuseAddToOutputPass leaves out an addition where one of its two inputs can be added to by the op that makes it:
    the readers of the sum then read that input instead, which is how it is told here.
    """
    if run.traced is None or run.listing is None:
        return {}
    compiled = {op.name: op for op in run.listing.ops}
    stands_for = _stands_for(run.traced.ops, compiled)
    result: dict[str, list[dict[str, str]]] = {}
    for op in run.traced.ops.values():
        if op.op != ADDITION or op.name in compiled or len(op.inputs) != 2:
            continue
        tensors = [tensor for _, tensor in op.inputs]
        replacement = stands_for.get(op.outputs[0] if op.outputs else "")
        if replacement in tensors:
            addend = tensors[1 - tensors.index(replacement)]
            result.setdefault(replacement.rpartition("/")[0], []).append(
                {"op": op.name, "tensor": _addend(addend, stands_for, run.traced.ops, compiled)}
            )
    return result


def _addend(
    tensor: str, stands_for: Mapping[str, str], traced: Mapping[str, TracedOp], compiled: Mapping[str, CompiledOp]
) -> str:
    """Returns what is added: past ops that give what they read and were pruned, as those between placements are."""
    while tensor not in stands_for:
        maker = traced.get(tensor.rpartition("/")[0])
        if maker is None or maker.name in compiled or len(maker.inputs) != 1 or op_kind(maker.op) not in PASSING:
            return tensor
        tensor = maker.inputs[0][1]
    return stands_for[tensor]


def _stands_for(traced: Mapping[str, TracedOp], compiled: Mapping[str, CompiledOp]) -> dict[str, str]:
    """Returns for each tensor that was pruned the one that its readers read instead."""
    pruned = {tensor for op in traced.values() if op.name not in compiled for tensor in op.outputs}
    result: dict[str, str] = {}
    for op in compiled.values():
        before = traced.get(op.name)
        if before is not None and len(before.inputs) == len(op.inputs):
            for (_, old), (new, _) in zip(before.inputs, op.inputs, strict=True):
                if old in pruned:
                    result.setdefault(old, _uncast(new, compiled))
    return result


def _uncast(tensor: str, compiled: Mapping[str, CompiledOp]) -> str:
    """Returns what a cast was made from."""
    maker = tensor.rpartition("/")[0]
    if maker.endswith(CASTS) and maker in compiled and compiled[maker].inputs:
        return compiled[maker].inputs[0][0]
    return tensor
