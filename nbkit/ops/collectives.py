"""Reads the names of collectives, sends and receives, and says what each sends."""

import re
from collections.abc import Mapping
from functools import cache

# What the ring algorithm sends of the whole tensor, in (n - 1) / n, after Patarasuk and Yuan, "Bandwidth optimal
# all-reduce algorithms for clusters of workstations", JPDC 69(2), 2009; what goes to one process is sent whole.
RING: Mapping[str, int] = {
    "all_reduce": 2, "all_gather": 1, "reduce_scatter": 1, "all_to_all": 1, "gather": 1, "scatter": 1
}  # fmt: skip
# Of ops, and of the ranges of backends, that send or wait.
NAMESPACES = ("c10d", "_c10d_functional", "c10d_functional", "_c10d_functional_autograd", "gloo", "nccl", "hccl", "mpi")
# What no rank leaves before all have come; a broadcast's source, and who sends, may.
MEETINGS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier")
WHOLE = ("broadcast", "reduce", "send", "recv")
P2P = ("send", "recv")
KINDS = (*RING, *WHOLE, "barrier")
# Which tensors each rank of the group must give in the same number and dtype, by the name of collective_of(): the ones
# that go in, come out, or both. all_to_all may send each rank another share, and a barrier sends nothing.
INPUTS, OUTPUTS = "inputs", "outputs"
ALIKE: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("all_reduce", "all_reduce_coalesced", "broadcast", "broadcast_oop"), (INPUTS, OUTPUTS)),
    **dict.fromkeys(("reduce", "reduce_oop", "reduce_scatter", "reduce_scatter_tensor_coalesced", "gather"), (INPUTS,)),
    **dict.fromkeys(("all_gather", "all_gather_into_tensor_coalesced", "scatter"), (OUTPUTS,)),
}
# Words of the names of c10d (allreduce_, _allgather_base_, alltoall_base_) as the others write them.
_SPELLED = {"allreduce": "all_reduce", "allgather": "all_gather", "alltoall": "all_to_all"}
# What another name begins with: isend, monitored_barrier.
_PREFIX = re.compile(r"i(?=send|recv)|monitored_")
_DISPATCHED = re.compile(r"(?:c10d|_c10d_functional(?:_autograd)?)\.(\w+)(?:\.\w+)?")
_CALLED = re.compile(r"torch\.distributed\.(\w+)")
_NAMED = re.compile(r"(\w+)")
# What a backend runs, often in a thread of its own: "gloo:all_reduce", "nccl:_all_gather_base", "nccl:send 0->1".
_RUN = re.compile(r"(?:gloo|nccl|mpi|ucc|xccl|hccl):(\w+)(?: .*)?")


def collective_of(packet: str) -> str:
    """Returns the name of a collective as torch.distributed has it: "all_gather" of "_allgather_base_"."""
    name = packet.strip("_").replace("_base", "")
    for short, spelled in _SPELLED.items():
        name = name.replace(short, spelled)
    return name


def dispatched_collective(op: str) -> str | None:
    """Returns which collective, send or receive a call of the dispatcher is: "all_gather" of "c10d._allgather_base_".

    None for what is none, such as a wait.
    """
    return _kind(_DISPATCHED, op)


def called_collective(op: str) -> str | None:
    """Returns the same of a call of torch.distributed: "send" of "torch.distributed.isend"."""
    return _kind(_CALLED, op)


def run_collective_name(op: str) -> str | None:
    """Returns the same of what a backend ran, as torch's flight recorder and profiler name it: "gloo:all_reduce"."""
    return _kind(_RUN, op)


def named_collective(name: str) -> str | None:
    """Returns the same of a bare name, as the profiler has it of a call of NCCL: "_allgather_base"; "wait" is none."""
    return _kind(_NAMED, name)


@cache
def _kind(pattern: re.Pattern[str], op: str) -> str | None:
    match = pattern.fullmatch(op)
    name = _PREFIX.sub("", collective_of(match[1]), 1) if match else ""
    return max((kind for kind in KINDS if name.startswith(kind)), key=len, default=None)


def group_text(words: str | None, size: int) -> str | None:
    """Returns a process group as ops has it, of its description or name and its size: "default_pg (2 ranks)"."""
    return f"{words} ({size} rank{'s' if size != 1 else ''})" if words and size > 0 else words or None
