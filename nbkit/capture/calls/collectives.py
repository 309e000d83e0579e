"""Describes the process groups and reductions of torch.distributed's collectives, and runs collectives again."""

import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from nbkit.capture.calls.encode import NotCapturedError
from nbkit.errors import TraceError

# A collective that another process does not answer ends after so long.
PATIENCE = timedelta(seconds=60)
REDUCTIONS = ("SUM", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "AVG")


def described(value: Any) -> Any:
    """Returns an argument that is an object of torch.distributed as JSON data. Raises NotCapturedError for others."""
    kind = value._type().qualified_name().rpartition(".")[2] if isinstance(value, torch.ScriptObject) else ""
    if kind == "ProcessGroup":
        group = torch._C._distributed_c10d.ProcessGroup.unbox(value)
        return {"group": dist.get_process_group_ranks(group)}
    if kind == "ReduceOp":
        return {"reduction": _reduction()}
    if kind == "Work":
        return None
    raise NotCapturedError(f"it has an argument of type {type(value).__name__}")


def works(out: Any) -> list[Any]:
    """Returns what says whether a collective has completed."""
    values = out if isinstance(out, list | tuple) else [out]
    unbox = torch._C._distributed_c10d.Work.unbox
    return [unbox(value) for value in values if isinstance(value, torch.ScriptObject)]


def is_waited_for(func: Any, args: tuple[Any, ...]) -> bool:
    """Returns whether the call of Python's API around a collective waits for it before it returns."""
    names = [argument.name for argument in func._schema.arguments]
    position = names.index("async_op") if "async_op" in names else len(args)
    return position < len(args) and args[position] is False


def _reduction() -> str:
    """Returns the reduction of the running call: torch does not let its argument be read, but who passed it."""
    frame = sys._getframe()
    while frame is not None:
        options = frame.f_locals.get("opts") if frame.f_globals.get("__name__") == dist.all_reduce.__module__ else None
        if options is not None and hasattr(options, "reduceOp"):
            known = [name for name in REDUCTIONS if options.reduceOp == getattr(dist.ReduceOp, name)]
            if known:
                return known[0]
        frame = frame.f_back  # type: ignore[assignment]
    raise NotCapturedError("its reduction cannot be read: a collective that torch starts in C++")


def process_group(ranks: Any) -> Any:
    """Returns the process group of these ranks. Raises TraceError if it is not that of all processes here."""
    if not dist.is_available() or not dist.is_initialized():
        raise TraceError(f"it needs a process group of {len(ranks)} processes; run it under torchrun")
    if ranks != list(range(dist.get_world_size())):
        raise TraceError(f"it ran in a group of the ranks {ranks}, and here are {dist.get_world_size()} processes")
    return dist.group.WORLD


def reduction(name: Any) -> Any:
    """Returns the reduction of that name. Raises KeyError."""
    return {known: getattr(dist.ReduceOp, known) for known in REDUCTIONS}[name]


def _waited(work: Any) -> None:
    if work is not None:
        work.wait(PATIENCE)


RUNS: dict[str, Callable[..., Any]] = {
    "c10d.allreduce_.default": lambda tensors, group, kind, *_: dist.all_reduce(tensors[0], kind, group, True),
    "c10d.allgather_.default": lambda lists, tensors, group, *_: dist.all_gather(lists[0], tensors[0], group, True),
    "c10d.broadcast_.default": lambda tensors, group, root, *_: dist.broadcast(tensors[0], root, group, True),
    "c10d.reduce_scatter_.default": lambda tensors, lists, group, kind, *_: dist.reduce_scatter(
        tensors[0], lists[0], kind, group, True
    ),
    "c10d.send.default": lambda tensors, group, rank, tag: dist.isend(tensors[0], rank, group, tag),
    "c10d.recv_.default": lambda tensors, group, rank, tag: dist.irecv(tensors[0], rank, group, tag),
}


def run_collective(name: str, args: tuple[Any, ...]) -> Any:
    """Runs a collective to its end; returns what the op returns, without its work."""
    _waited(RUNS[name](*args))
    return None if name in ("c10d.send.default", "c10d.recv_.default") else (args[0], None)
