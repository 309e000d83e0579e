"""Rules about memory: a part that is changed in place and read by another module, a cache that is copied to grow."""

from collections.abc import Iterator

import numpy as np

from nbkit.findings.dataflow.flow import Flow, Op
from nbkit.findings.finding import Finding, rule
from nbkit.ops.families import PARTS, family
from nbkit.step.step import Tensor

VIEWS = family("PARTS FORMS")
# They compute with what they overwrite. What only fills memory (copy_, fill_, index_put_) is how caches are written.
IN_PLACE = frozenset(op for op in family("FORMULAS ACTIVATIONS addcmul addcdiv") - {"where_"} if op.endswith("_"))


@rule("warning", rank=40)
def overwritten_view(flow: Flow) -> Iterator[Finding]:
    """An op changes a part of a result in place that another op reads later."""
    for op in flow.ops.values():
        if op.name not in IN_PLACE or not op.is_ahead or op.module is None or not op.inputs:
            continue
        whole = _whole_of(flow, op.inputs[0])
        if whole is None:
            continue
        maker = flow.maker(whole)
        if maker is None or not maker.is_ahead or maker.module == op.module:
            continue
        reader = next((reader for reader in _later(flow, op, whole) if _is_outside(reader.module, op.module)), None)
        if reader is not None:
            made, read = (f"module {module or '(root)'}" for module in (maker.module, reader.module))
            message = (
                f"{op.name} changes a part of what {made} made, in place, and {read} reads the changed values later"
            )
            advice = (
                "Write it without the in-place op: part = part * scale, not part *= scale; or clone() the part first."
            )
            evidence = {"made_by": maker.op_id, "read_by": reader.op_id}
            yield overwritten_view.finding(message, advice, op.op_id, evidence=evidence)


def _whole_of(flow: Flow, tensor: Tensor) -> Tensor | None:
    """Returns the tensor that a part of the same memory was taken from; null where it is no part."""
    is_part = False
    maker = flow.maker(tensor)
    while maker is not None and maker.name in VIEWS and maker.inputs:
        source = maker.inputs[0]
        if source.memory != tensor.memory:
            return None
        is_part |= maker.name in PARTS and source.numel > tensor.numel
        tensor, maker = source, flow.maker(source)
    return tensor if is_part else None


def _later(flow: Flow, op: Op, whole: Tensor) -> Iterator[Op]:
    """Returns the forward ops after `op` that read the tensor whose part it changed."""
    for reader in flow.ops.values():
        is_later = reader.op_id > op.op_id and reader.is_ahead
        if is_later and any(tensor.tensor_id == whole.tensor_id for tensor in reader.inputs):
            yield reader


def _is_outside(module: str | None, inside: str) -> bool:
    """Returns whether a module is neither `inside` nor a part of it."""
    return module is not None and module != inside and not module.startswith(f"{inside}.")


BEFORE = (
    "Write it out of place, x = x * 2, or after backward(); .data hides the change from autograd, which would name it."
)


@rule("warning", rank=45)
def changed_before_backward(flow: Flow) -> Iterator[Finding]:
    """An op changes in place what an earlier one keeps for its backward pass, which reads the changed values: by
    `.data`, as autograd would refuse it else.
    """
    changes = {op.inputs[0].tensor_id: op for op in flow.ops.values() if _changes(flow, op)}
    made_by = flow.step.ops["forward_op_id"].to_numpy(np.int64, na_value=-1)
    named = set[int]()
    for backward in (op for op in flow.ops.values() if changes and op.phase == "backward"):
        kept = flow.ops.get(int(made_by[backward.op_id]))
        for tensor in backward.inputs if kept is not None else ():
            change = changes.get(tensor.tensor_id)
            if kept is None or change is None or change.op_id in named:
                continue
            had = any(one.tensor_id == tensor.tensor_id for one in (*kept.inputs, *kept.outputs))
            if had and kept.op_id < change.op_id < backward.op_id:
                named.add(change.op_id)
                message = (
                    f"{change.name} changes in place what {kept.name} keeps for its backward pass, and {backward.name} "
                    "reads the changed values there: the gradients are those of another function"
                )
                evidence = {"kept_by": kept.op_id, "read_by": backward.op_id}
                yield changed_before_backward.finding(message, BEFORE, change.op_id, evidence=evidence)


def _changes(flow: Flow, op: Op) -> bool:
    """Returns whether an op computes with what it overwrites, which no model holds."""
    return op.name in IN_PLACE and op.is_ahead and bool(op.inputs) and op.inputs[0].memory not in flow.held


# So often, that the copies are more than a hundred times the cache.
FEWEST = 32
ROOM = "Make the cache once with room for all tokens (torch.empty), and write each into its place."


@rule("hint", rank=120)
def growing_cat(flow: Flow) -> Iterator[Finding]:
    """32 calls of `cat` or more each copy the result of the one before to make it a little longer."""
    chains: dict[int, list[Op]] = {}  # by the cat() that is their last so far
    for op in flow.named("cat"):
        if not op.inputs or not op.outputs:
            continue
        adds_little = len(op.inputs) == 1 or op.inputs[0].numel * 2 >= op.outputs[0].numel
        before = flow.maker(op.inputs[0]) if adds_little else None
        chain = [] if before is None else chains.pop(before.op_id, [])
        chains[op.op_id] = [*chain, op]
    for chain in chains.values():
        if len(chain) >= FEWEST:
            yield _growing(chain)


def _growing(chain: list[Op]) -> Finding:
    last = chain[-1].outputs[0]
    copied = sum(op.inputs[0].numel for op in chain) / max(last.numel, 1)
    message = (
        f"a chain of {len(chain)} calls of cat grows a tensor to {[*last.shape]} little by little, and copies "
        f"{copied:.0f} times what it holds at the end"
    )
    return growing_cat.finding(message, ROOM, chain[0].op_id, evidence={"cats": len(chain), "copied": copied})
