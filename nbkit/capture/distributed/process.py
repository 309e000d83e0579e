"""Tells which of several processes this is, when its recording began, and which process groups it is in."""

import socket
from dataclasses import dataclass
from time import perf_counter_ns, time_ns
from typing import Any

import torch.distributed as dist

from nbkit.ops.collectives import group_text

LOOKS = 5  # between two readings of a clock another process may run


@dataclass(frozen=True)
class Group:
    """Describes a process group: its text as ops has it, and the global ranks of its members in their order."""

    text: str | None
    ranks: tuple[int, ...]

    def rank_of(self, member: Any) -> int | None:
        """Returns the global rank of a member by its rank in the group; None for what is none."""
        is_rank = isinstance(member, int) and 0 <= member < len(self.ranks)
        return self.ranks[member] if is_rank else None


def is_distributed() -> bool:
    """Returns whether a process group has been initialized here."""
    return dist.is_available() and dist.is_initialized()


def process_meta(started_ns: int) -> dict[str, Any]:
    """Returns what meta says of one of several processes; nothing where there is no process group.

    `started_ns` is the wall clock, unix ns, where start_us is 0.
    """
    if not is_distributed():
        return {}
    return {
        "rank": dist.get_rank(),
        "world_size": dist.get_world_size(),
        "host": socket.gethostname(),
        "started_ns": started_ns,
    }


def wall_clock_offset_ns() -> int:
    """Returns what to add to perf_counter_ns() for the wall clock, unix ns: the closest of some looks at both."""
    looks = [(perf_counter_ns(), time_ns(), perf_counter_ns()) for _ in range(LOOKS)]
    before, now, after = min(looks, key=lambda look: look[2] - look[0])
    return now - (before + after) // 2


def described_group(group: Any) -> Group:
    """Returns what is known of a process group; None is the default one."""
    process_group = group if group is not None else dist.distributed_c10d._get_default_group()
    words = getattr(process_group, "group_desc", None) or getattr(process_group, "group_name", None)
    size = dist.get_world_size(group)
    # Of a group that this process is not in, torch tells no ranks.
    ranks = tuple(dist.get_process_group_ranks(process_group)) if size > 0 else ()
    return Group(group_text(words, size), ranks)


def groups_by_name() -> dict[str, Group]:
    """Returns the process groups of this process by the name that torch's flight recorder has."""
    if not is_distributed():
        return {}
    names = dist.distributed_c10d._world.pg_names
    return {str(name): described_group(group) for group, name in names.items()}
