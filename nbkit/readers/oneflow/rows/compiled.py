"""Builds rows of the compiled graph, from its listing: what the passes made of the traced one."""

from collections.abc import Mapping
from typing import Any

from nbkit.graphs.rows import GraphRows
from nbkit.readers.oneflow.log.runs import Run
from nbkit.readers.oneflow.log.store import Listing
from nbkit.readers.oneflow.names import base_of, inserted_by, op_type, split_name
from nbkit.readers.oneflow.rows.hidden import ADDED, hidden_inputs
from nbkit.readers.oneflow.rows.phases import by_readers, phases_in_order
from nbkit.readers.oneflow.rows.tensors import Flow
from nbkit.readers.oneflow.rows.traced import kind_of, module_of, source_of, traced_phases, write_unused_buffers
from nbkit.readers.oneflow.text.operator_line import CompiledOp
from nbkit.readers.oneflow.text.traced import TracedOp


def write_compiled(rows: GraphRows, run: Run, listing: Listing) -> list[str]:
    """Writes the graph "NAME compiled"; returns the tensors that come from outside of it."""
    flow = Flow(f"{run.label} compiled")
    traced: Mapping[str, TracedOp] = run.traced.ops if run.traced else {}
    made_by = {op.name: inserted(op, run) for op in listing.ops}
    phases, hidden = _phases(run, listing, made_by), hidden_inputs(run)
    made = {tensor for op in listing.ops for tensor, _ in op.outputs}
    for op in listing.ops:
        before, kind = traced.get(op.name), compiled_kind(op, run)
        phase = phases.get(op.name)
        node = flow.node(
            rows,
            kind,
            op.name,
            op.outputs,
            op=(before.op if before is not None else op_type(op.name)) if kind == "op" else None,
            module=op.module if op.module is not None else module_of(op.name, kind, run),
            phase=phase,
            inserted=made_by[op.name] or ("autograd" if phase == "backward" else None),
            device=op.placement,
            attributes=_attributes(op, before) | ({"hidden_inputs": hidden[op.name]} if op.name in hidden else {}),
            source=source_of(op.location) or (source_of(before.loc) if before is not None else None),
            line=op.line,
        )
        slots = _slots(op, before)
        for port, (tensor, seen) in enumerate(op.inputs):
            flow.reads(node, port, slots[port], tensor, seen)
        for port, one in enumerate(hidden.get(op.name, []), len(op.inputs)):
            if one["tensor"] in made:
                flow.reads(node, port, ADDED, one["tensor"])
    if run.traced is None:
        write_unused_buffers(rows, flow, run)
    return flow.write(rows)


def inserted(op: CompiledOp, run: Run) -> str | None:
    """Returns what put an op there that was not traced; None for traced ones, and where there is no traced graph."""
    if run.traced is not None and op.name in run.traced.ops:
        return None
    variables = run.tree.parameters or (run.traced.ops if run.traced else {})
    reason = inserted_by(op.name, variables)
    if reason is None and run.traced is not None and op.name not in run.tree.parameters:
        return "pass"
    return reason


def compiled_kind(op: CompiledOp, run: Run) -> str:
    """Returns parameter, buffer, input, output or op; state that passes added is a buffer."""
    before = run.traced.ops.get(op.name) if run.traced else None
    if before is not None:
        return kind_of(before, run)
    if op.name in run.tree.parameters:
        return "parameter"
    if op.name.startswith((f"_{run.name}_input", f"_{run.name}-input")):
        return "input"
    if op.name.startswith((f"_{run.name}_output", f"_{run.name}-output")):
        return "output"
    is_variable = not op.inputs and [tensor for tensor, _ in op.outputs] == [f"{op.name}/out"]
    return "buffer" if is_variable else "op"


def _phases(run: Run, listing: Listing, made_by: Mapping[str, str | None]) -> dict[str, str | None]:
    """Returns each op's phase by name: of the op it was made for, else of those that read what it makes."""
    known: dict[str, str | None] = dict(_captured_phases(run, listing))
    unnamed = [op for op in listing.ops if op.name not in known and compiled_kind(op, run) not in ("input", "output")]
    names = {op.name for op in listing.ops} | set(known)
    for op in unnamed:
        if made_by[op.name] == "optimizer":
            known[op.name] = "optimizer"
        elif made_by[op.name] is not None:
            base = base_of(op.name, names)
            known[op.name] = None if base is None else known.get(base)
    makers = {tensor: op.name for op in listing.ops for tensor, _ in op.outputs}
    readers: dict[str, list[str]] = {}
    for op in listing.ops:
        for tensor, _ in op.inputs:
            readers.setdefault(makers.get(tensor, ""), []).append(op.name)
    by_readers(known, readers, [op.name for op in unnamed if made_by[op.name] and known.get(op.name) is None])
    return known


def _captured_phases(run: Run, listing: Listing) -> dict[str, str]:
    """Returns each traced op's phase; without a traced graph that of the ops whose number says when they were made."""
    if run.traced is not None:
        return traced_phases(run.traced)
    numbered = {
        op.name: parts
        for op in listing.ops
        if (parts := split_name(op.name)) and inserted_by(op.name, run.tree.parameters) is None
    }
    in_order = sorted(numbered, key=lambda name: numbered[name][2])
    return phases_in_order([(name, numbered[name][1]) for name in in_order])


def _slots(op: CompiledOp, before: TracedOp | None) -> list[str | None]:
    """Returns names of the inputs, where the traced op had as many."""
    if before is None or len(before.inputs) != len(op.inputs):
        return [None] * len(op.inputs)
    return [slot for slot, _ in before.inputs]


def _attributes(op: CompiledOp, before: TracedOp | None) -> dict[str, Any]:
    result = dict(before.attributes) if before is not None else {}
    if any(seen.sbp for _, seen in op.inputs):
        result["input_sbp"] = [list(seen.sbp) for _, seen in op.inputs]
    if any(seen.sbp for _, seen in op.outputs):
        result["output_sbp"] = [list(seen.sbp) for _, seen in op.outputs]
    if op.lists:
        result["lists"] = op.lists
    if op.location:
        result["location"] = op.location
    if op.is_damaged:
        result["damaged"] = True
    return result
