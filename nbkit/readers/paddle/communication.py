"""Reads what a program says of its other processes: collectives, the mesh, the parameters its optimizer owns."""

from collections.abc import Iterable, Iterator
from typing import Any

from nbkit.readers.paddle.records import Block, Operation, Variable

PREFIXES = (
    "c_allgather",
    "c_allreduce",
    "c_broadcast",
    "c_comm_init",
    "c_concat",
    "c_gen_",
    "c_identity",
    "c_reduce",
    "c_scatter",
    "c_split",
    "c_sync_",
    "c_wait_",
    "partial_allgather",
    "partial_recv",
    "partial_send",
)
TYPES = frozenset(
    "all_gather all_reduce all_to_all alltoall barrier broadcast dist_concat gather_scatter global_gather "
    "global_scatter mp_allreduce_sum p_recv p_recv_array p_send p_send_array recv_v2 reduce reduce_scatter send_v2 "
    "sync_calc_stream".split()
)
ROOTS = ("root_id", "root")


def is_communication(kind: str) -> bool:
    """Returns whether operations of this type, without dialect, move tensors between processes or wait for that."""
    return kind in TYPES or kind.startswith(PREFIXES)


def collective(operation: Operation) -> dict[str, Any]:
    """Returns its ring, peer and root, None where it has none, and the tensors that it moves."""
    attributes = operation.attributes
    tensors = [name for _, names in operation.inputs for name in names]
    tensors = tensors or [name for _, names in operation.outputs for name in names]
    root = next((attributes[name] for name in ROOTS if name in attributes), None)
    return {"ring": attributes.get("ring_id"), "peer": attributes.get("peer"), "root": root, "tensors": tensors}


class Meshes:
    """Counts the process meshes that programs name, each with how many operations it has."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, Any]] = {}

    def add(self, blocks: Iterable[Block]) -> None:
        """Takes those of a program's operations and variables."""
        for mesh, is_operation in _meshes(blocks):
            row = self._rows.setdefault(str(sorted(mesh.items(), key=str)), {**mesh, "operations": 0})
            row["operations"] += is_operation

    def parallelism(self) -> dict[str, Any]:
        """Returns sizes of the largest mesh's dimensions (dp, pp ...), its ranks, and all meshes, if there are any."""
        if not self._rows:
            return {}
        rows = list(self._rows.values())
        largest = max(rows, key=lambda mesh: len(mesh["process_ids"]))
        return {"dimensions": dimensions(largest), "ranks": largest["process_ids"], "meshes": rows}


def _meshes(blocks: Iterable[Block]) -> Iterator[tuple[dict[str, Any], bool]]:
    for block in blocks:
        holders: list[Operation | Variable] = [*block.operations, *block.variables.values()]
        for holder in holders:
            if mesh := _mesh(holder):
                yield mesh, isinstance(holder, Operation)


def _mesh(holder: Operation | Variable) -> dict[str, Any] | None:
    dist_attr = holder.attributes.get("dist_attr") or holder.attributes.get("op_dist_attr")
    mesh = dist_attr.get("process_mesh", dist_attr.get("mesh")) if isinstance(dist_attr, dict) else None
    if not isinstance(mesh, dict) or not isinstance(mesh.get("process_ids"), list):
        return None
    return {name: value for name, value in mesh.items() if name != "annotated"}


def mesh_text(holder: Operation | Variable) -> str | None:
    """Returns the mesh that an operation or a variable is for: 'dp 2, mp 1: ranks 1, 3'; None if it names none."""
    mesh = _mesh(holder)
    if mesh is None:
        return None
    sizes = ", ".join(f"{name} {size}" for name, size in dimensions(mesh).items())
    ranks = f"ranks {', '.join(map(str, mesh['process_ids']))}"
    return f"{sizes}: {ranks}" if sizes else ranks


def dimensions(mesh: dict[str, Any]) -> dict[str, Any]:
    """Returns the sizes of a mesh by the names of its dimensions, as far as it has names."""
    names, shape = mesh.get("dim_names"), mesh.get("shape")
    pairs = zip(names, shape, strict=False) if isinstance(names, list) and isinstance(shape, list) else ()
    return {str(name): size for name, size in pairs}


def sharding(blocks: Iterable[Block]) -> dict[str, Any]:
    """Returns parameters that the optimizer here updates, and those only received, by the root that sends them.

    Empty where no parameter is only received: then the optimizer is not shared out.
    """
    operations = [operation for block in blocks for operation in block.operations]
    owned = list(dict.fromkeys(name for operation in operations for name in _names(operation, "Param")))
    sent: dict[str, Any] = {}
    for operation in operations:
        if operation.bare_type in ("c_broadcast", "broadcast"):
            sent |= {name: operation.attributes.get("root") for name in _names(operation, "X")}
    received = {name: root for name, root in sent.items() if name not in owned}
    if not owned or not received:
        return {}
    roots = [sent[name] for name in owned if name in sent]
    return {
        "owned": owned,
        "received": received,
        "root": roots[0] if roots and roots == roots[:1] * len(roots) else None,
    }


def _names(operation: Operation, slot: str) -> list[str]:
    return [name for named, names in operation.inputs if named == slot for name in names]
