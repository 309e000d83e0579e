"""Builds rows of the traced graph: what the user's code and autograd added, in call order."""

import re
from typing import Any

from nbkit.graphs.rows import GraphRows
from nbkit.readers.oneflow.log.runs import Run
from nbkit.readers.oneflow.log.store import Traced
from nbkit.readers.oneflow.names import holder, split_name
from nbkit.readers.oneflow.rows.phases import phases_in_order
from nbkit.readers.oneflow.rows.tensors import Flow
from nbkit.readers.oneflow.text.operator_line import Description
from nbkit.readers.oneflow.text.traced import TracedOp

# The forms in order of version; in the last one the innermost frame comes first.
FRAME = re.compile(r"file '([^']+)', line (\d+)")
LOCATION = re.compile(r" at '([^']+)': line (\d+)")
FILE = re.compile(r'File "([^"]+)", line (\d+)')


def traced_phases(traced: Traced) -> dict[str, str]:
    """Returns each op's phase by name; variables, inputs and outputs have none."""
    return phases_in_order([(op.name, op.op) for op in traced.ops.values() if op.kind == "op"])


def kind_of(op: TracedOp, run: Run) -> str:
    """Returns the kind of an op; a variable that the module tree calls a buffer is one."""
    return "buffer" if op.kind == "parameter" and op.name in run.tree.buffers else op.kind


def module_of(name: str, kind: str, run: Run) -> str | None:
    """Returns the module path that an op's name begins with, "" outside of all; of a variable its module's."""
    if kind in ("input", "output"):
        return ""
    if kind in ("parameter", "buffer"):
        return holder(name)
    parts = split_name(name)
    return parts[0] if parts else ("" if "." not in name else None)


def write_traced(rows: GraphRows, run: Run, traced: Traced) -> list[str]:
    """Writes the graph "NAME traced"; returns the tensors that come from outside of it."""
    flow, phases, listed = Flow(f"{run.label} traced"), traced_phases(traced), _listed(run)
    for op in traced.ops.values():
        kind = kind_of(op, run)
        known = [_described(op, tensor, traced, listed) for tensor in op.outputs]
        phase = phases.get(op.name)
        node = flow.node(
            rows,
            kind,
            op.name,
            list(zip(op.outputs, known, strict=True)),
            Description(tuple(op.sbp or ()), op.shape, op.dtype),
            op=op.op,
            module=module_of(op.name, kind, run),
            phase=phase,
            inserted="autograd" if phase == "backward" else None,
            device=op.device,
            attributes=_attributes(op),
            source=source_of(op.loc),
            line=op.line,
        )
        for port, (slot, tensor) in enumerate(op.inputs):
            flow.reads(node, port, slot, tensor)
    write_unused_buffers(rows, flow, run)
    return flow.write(rows)


def write_unused_buffers(rows: GraphRows, flow: Flow, run: Run) -> None:
    """Writes the buffers that modules have and no op reads, such as the mask of an attention that is fused."""
    for path in run.unused_buffers:
        tensor = run.tree.buffers[path]
        made = [(f"{path}/out", Description((), tensor.shape, tensor.dtype))]
        flow.node(rows, "buffer", path, made, module=holder(path), attributes={"read": False})


def _listed(run: Run) -> dict[str, Description]:
    """Returns the tensors of the compiled graph: passes change dtypes, but not the shape that a name stands for."""
    return {tensor: seen for op in (run.listing.ops if run.listing else ()) for tensor, seen in op.outputs}


def _described(op: TracedOp, tensor: str, traced: Traced, listed: dict[str, Description]) -> Description:
    if result := traced.tensors.get(tensor):
        return result
    if op.shape is not None or op.dtype is not None:
        return Description(tuple(op.sbp or ()), op.shape, op.dtype)
    compiled = listed.get(tensor)
    return Description((), None if compiled is None else compiled.shape, None)


def _attributes(op: TracedOp) -> dict[str, Any]:
    result = dict(op.attributes)
    if op.loc:
        result["loc"] = op.loc
    if op.sbp is not None:
        result["sbp"] = op.sbp
    if not op.is_added:
        result["added"] = False
    if op.is_damaged:
        result["damaged"] = True
    return result


def source_of(loc: str | None) -> str | None:
    """Returns 'path/file.py:12' of the innermost frame; None if the location names none."""
    if not loc:
        return None
    if match := FILE.search(loc):
        return f"{match[1]}:{match[2]}"
    locations = LOCATION.findall(loc) or FRAME.findall(loc)
    return f"{locations[-1][0]}:{locations[-1][1]}" if locations else None
