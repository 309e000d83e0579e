"""Jobs of several ranks for tests: the saved traces of small steps in folders `rank=N`."""

from pathlib import Path

import pandas as pd

from nbkit.schema import COLLECTIVES
from nbkit.trace.trace import Trace
from tests.support.fakes import small_trace


def rank_trace(rank: int, world: int | None = 4, **meta: object) -> Trace:
    """The trace of a rank whose times are those of rank 0, plus 100 us for each rank before it."""
    trace = small_trace(verb="optime", name="step", rank=rank, host=f"node{rank // 2}", **meta)
    if world is not None:
        trace.meta["world_size"] = world
    trace.meta |= {"wall_us": 1000.0 + 100 * rank, "started_ns": 1_700_000_000_000_000_000 + rank}
    ops = trace.ops
    trace.frames["ops"] = ops.assign(self_time_us=ops["self_time_us"] + 100.0 * rank)
    return trace


def with_collectives(trace: Trace, rank: int) -> Trace:
    rows = [
        {"rank": None, "op": "all_reduce", "group": "0", "seq": seq, "is_p2p": False, "size_bytes": 64,
         "start_us": float(seq), "wait_us": 10.0 * (4 - rank)}
        for seq in range(2)
    ]  # fmt: skip
    trace.frames["collectives"] = COLLECTIVES.frame(rows)
    return trace


def save_job(folder: Path, ranks: int = 4, world: int | None = 4) -> Path:
    """A job whose first ranks are there."""
    for rank in range(ranks):
        with_collectives(rank_trace(rank, world), rank).save(folder / f"rank={rank}")
    return folder


def all_ops(folder: Path) -> pd.DataFrame:
    """The ops of all ranks, as pandas reads them one by one."""
    paths = sorted(folder.glob("rank=*"), key=lambda path: int(path.name.removeprefix("rank=")))
    frames = [Trace.load(path).ops.assign(rank=int(path.name.removeprefix("rank="))) for path in paths]
    return pd.concat(frames, ignore_index=True)
