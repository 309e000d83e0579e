"""Collectives are captured when they complete, in each process its own, and replayed by as many processes."""

import os
from pathlib import Path

import torch
import torch.distributed as dist

import nbkit
from tests.capture.distributed.ranks import on_two_ranks
from tests.capture.operators.folders import problems

OPS = {f"c10d.{name}.default" for name in ("allreduce_", "allgather_", "broadcast_", "reduce_scatter_")}


def place() -> Path:
    return Path(os.environ["NBKIT_TEST_CALLS"]) / f"rank {dist.get_rank()}"


def step() -> torch.Tensor:
    rank = dist.get_rank()
    x, parts = torch.arange(3.0) + rank, [torch.zeros(3), torch.zeros(3)]
    dist.all_reduce(x)
    dist.all_reduce(x, op=dist.ReduceOp.MAX)
    dist.all_gather(parts, x + rank)
    dist.broadcast(parts[0], 1)
    scattered = torch.zeros(3)
    dist.reduce_scatter(scattered, [x, parts[1]])
    dist.send(x, 1) if rank == 0 else dist.recv(x, 0)
    running = dist.all_reduce(scattered, async_op=True)
    running.wait()
    return scattered.mul_(2) + x


def unfinished() -> tuple[list[str], dict[str, int]]:
    """Returns which collectives were captured, and why others were not, where one waits for what comes afterwards."""
    rank, x = dist.get_rank(), torch.zeros(2)
    with nbkit.opcapture(place().with_name(f"unfinished {rank}")) as trace:
        running = dist.irecv(x, 1) if rank == 0 else None
        dist.all_reduce(torch.ones(2))
    dist.send(x, 1) if rank == 0 else dist.recv(x, 0)
    running.wait() if running else dist.send(x + 1, 0)
    assert x.tolist() == [1 - rank] * 2
    skipped = {reason: count for reason, count in trace.meta["skipped"].items() if reason.startswith("not captured")}
    return [op for op in trace.captures["op"] if op.startswith("c10d")], skipped


def overwritten() -> int:
    """Returns how many collectives replay as they were, of one whose result the next op, left out, writes to."""
    x, folder = torch.ones(2), place().with_name(f"overwritten {dist.get_rank()}")
    with nbkit.opcapture(folder, ops="c10d.*"):
        dist.all_reduce(x)
        x.mul_(3)
    return nbkit.opreplay(folder).meta["identical_calls"]


def captured_and_replayed() -> dict[str, object]:
    bare = step()
    with nbkit.opcapture(place()) as trace:
        out = step()
    replay = nbkit.opreplay(place())
    return {
        "same": torch.equal(out, bare),
        "ops": set(trace.captures["op"]),
        "skipped": {reason for reason in trace.meta["skipped"] if reason.startswith("not captured")},
        "identical": (replay.meta["identical_calls"], replay.meta["captured_calls"]),
        "problems": problems(replay),
        "not run": replay.meta["skipped"],
        "unfinished": unfinished(),
        "overwritten": overwritten(),
    }


def test_two_processes_capture_and_replay_their_collectives(tmp_path, monkeypatch):
    monkeypatch.setenv("NBKIT_TEST_CALLS", str(tmp_path))
    found = on_two_ranks(captured_and_replayed, tmp_path)
    for rank, one in enumerate(found):
        assert one["same"] and one["problems"] == [] and one["not run"] == {}, one
        assert one["identical"][0] == one["identical"][1] > 10
        assert one["ops"] >= {*OPS, ("c10d.send.default", "c10d.recv_.default")[rank]}
        assert one["skipped"] == set() and one["overwritten"] == 1
    late = "not captured: collectives that had not completed when the recording ended"
    assert [one["unfinished"] for one in found] == [
        (["c10d.allreduce_.default"], {late: 1}),
        (["c10d.allreduce_.default"], {}),
    ]


def test_without_other_processes_a_collective_says_what_it_needs(tmp_path, monkeypatch):
    monkeypatch.setenv("NBKIT_TEST_CALLS", str(tmp_path))
    on_two_ranks(captured_and_replayed, tmp_path)
    meta = nbkit.opreplay(tmp_path / "rank 0").meta
    assert meta["skipped"] == {"not run again: it needs a process group of 2 processes; run it under torchrun": 7}
    assert meta["identical_calls"] == meta["captured_calls"] - 7
