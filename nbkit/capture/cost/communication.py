"""Counts the bytes that each process sends in a collective."""

from typing import Any

import torch
from torch._ops import OpOverload

from nbkit.capture.replay.copies import tensors_in
from nbkit.capture.replay.op_traits import SPELLED

NAMESPACES = frozenset(("c10d", "_c10d_functional", "_c10d_functional_autograd"))
# What the ring algorithm sends of the whole tensor, in (n - 1) / n, after Patarasuk and Yuan, "Bandwidth optimal
# all-reduce algorithms for clusters of workstations", JPDC 69(2), 2009; what goes to one process is sent whole.
RING = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1, "all_to_all": 1, "gather": 1, "scatter": 1}
WHOLE = ("broadcast", "reduce", "send", "recv")


def communication_bytes(func: OpOverload, args: Any, kwargs: Any, out: Any) -> int | None:
    """Returns the bytes that each process sends, by the ring algorithm; None for an op that is no such collective."""
    if func.namespace not in NAMESPACES:
        return None
    name = func._opname.removeprefix("_")
    for short, spelled in SPELLED.items():
        name = name.replace(short, spelled)
    kinds = [kind for kind in (*RING, *WHOLE) if name.startswith(kind)]
    size = _group_size(func, args, kwargs)
    if not kinds or size is None:
        return None
    # The whole tensor of a collective is the larger side: the result of a gather, the input of a scatter.
    results = out if isinstance(out, list | tuple) else (out,)
    whole = max(sum(tensor.nbytes for tensor in tensors_in(held)) for held in (*args, *results))
    kind = max(kinds, key=len)
    return RING[kind] * whole * (size - 1) // size if kind in RING else whole * (size > 1)


def _group_size(func: OpOverload, args: Any, kwargs: Any) -> int | None:
    """Returns how many processes take part; None where the call does not tell."""
    for place, argument in enumerate(func._schema.arguments):
        value = args[place] if place < len(args) else kwargs.get(argument.name)
        if argument.name == "group_size" and isinstance(value, int):
            return value
        if argument.name == "process_group" and isinstance(value, torch.ScriptObject):
            return int(torch._C._distributed_c10d.ProcessGroup.unbox(value).size())
        if argument.name == "group_name" and isinstance(value, str):
            resolve: Any = torch._C._distributed_c10d._resolve_process_group
            try:
                return int(resolve(value).size())
            except (RuntimeError, ValueError, LookupError):  # no group of this name here
                return None
    return None
