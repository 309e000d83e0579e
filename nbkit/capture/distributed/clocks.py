"""Measures how far the clocks of a job's processes are apart, by messages to and fro with rank 0."""

from time import time_ns

import pandas as pd
import torch
import torch.distributed as dist

from nbkit.capture.distributed.process import is_distributed
from nbkit.errors import OptionError
from nbkit.timeline.clocks import CLOCKS
from nbkit.trace.checks import checked_count

# Of this process, as meta has it: set by align_clocks().
_measured: dict[str, float] = {}


def align_clocks(rounds: int = 200) -> pd.DataFrame:
    """Measures by how much each rank's clock is ahead of rank 0's; returns rank, offset_us and error_us of all ranks.

    Every rank calls it, before or between recordings, as it would a barrier. Each exchanges `rounds` messages with
    rank 0, some 0.1 ms each; of the one that was fastest, the half of its way is the error at most. Recordings that
    begin later have both numbers in `meta`, and what is said of several ranks heeds them. Raises OptionError without a
    process group.
    """
    checked_count("rounds", rounds)
    if not is_distributed():
        raise OptionError("align_clocks() needs a process group; call torch.distributed.init_process_group() first.")
    # Of the CPU, whatever the job's own backend is; every rank is in it.
    group = dist.new_group(backend="gloo")
    try:
        rank, ranks = dist.get_rank(), dist.get_world_size()
        found = torch.zeros(ranks, 2, dtype=torch.float64)
        for other in range(1, ranks):
            if rank == 0:
                found[other] = _asked(other, rounds, group)
            elif rank == other:
                _answer(rounds, group)
        dist.broadcast(found, 0, group=group)
    finally:
        dist.destroy_process_group(group)
    _measured.update(zip(("clock_offset_us", "clock_error_us"), found[rank].tolist(), strict=True))
    return CLOCKS.check(
        pd.DataFrame({"rank": range(ranks), **dict(zip(CLOCKS.names[1:], found.T.numpy(), strict=True))})
    )


def measured_clock() -> dict[str, float]:
    """Returns what align_clocks() found of this process, as meta has it; nothing before that."""
    return dict(_measured) if is_distributed() else {}


def _asked(other: int, rounds: int, group: dist.ProcessGroup) -> torch.Tensor:
    """Returns offset and error of another rank's clock, us: of the message that was answered soonest."""
    clock = torch.zeros(1, dtype=torch.int64)
    best = None
    for _ in range(rounds):
        sent_ns = time_ns()
        dist.send(clock, other, group=group)
        dist.recv(clock, other, group=group)
        way_ns = time_ns() - sent_ns
        if best is None or way_ns < best[0]:
            best = way_ns, int(clock) - sent_ns - way_ns / 2
    assert best is not None
    return torch.tensor([best[1] / 1e3, best[0] / 2e3], dtype=torch.float64)


def _answer(rounds: int, group: dist.ProcessGroup) -> None:
    clock = torch.zeros(1, dtype=torch.int64)
    for _ in range(rounds):
        dist.recv(clock, 0, group=group)
        clock[0] = time_ns()
        dist.send(clock, 0, group=group)
