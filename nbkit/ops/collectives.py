"""Reads the names of collectives, and says what each sends."""

from collections.abc import Mapping

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
# Words of the names of c10d (allreduce_, _allgather_base_, alltoall_base_) as the others write them.
_SPELLED = {"allreduce": "all_reduce", "allgather": "all_gather", "alltoall": "all_to_all"}


def collective_of(packet: str) -> str:
    """Returns the name of a collective as torch.distributed has it: "all_gather" of "_allgather_base_"."""
    name = packet.strip("_").replace("_base", "")
    for short, spelled in _SPELLED.items():
        name = name.replace(short, spelled)
    return name
