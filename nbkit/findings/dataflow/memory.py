"""Rule about memory: a part of a result that a module changes in place, and that another module reads later."""

from collections.abc import Iterator

from nbkit.findings.dataflow.flow import Flow, Op, Tensor
from nbkit.findings.dataflow.found import Found
from nbkit.ops.families import FORMS, PARTS

# They compute with what they overwrite. What only fills memory (copy_, fill_, index_put_) is how caches are written.
IN_PLACE = frozenset("add_ sub_ mul_ div_ addcmul_ addcdiv_ pow_ neg_ clamp_ sigmoid_ tanh_ relu_ exp_".split())


def overwritten_views(flow: Flow) -> Iterator[Found]:
    """Finds an in-place op on a part of what another module made, and an op outside that reads the whole later."""
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
            yield Found("overwritten_view", "warning", message, advice, op, evidence)


def _whole_of(flow: Flow, tensor: Tensor) -> Tensor | None:
    """Returns the tensor that a part of the same memory was taken from; null where it is no part."""
    is_part = False
    maker = flow.maker(tensor)
    while maker is not None and maker.name in PARTS | FORMS and maker.inputs:
        source = maker.inputs[0]
        if source.storage_id != tensor.storage_id:
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
