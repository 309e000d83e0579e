"""Asks whether a rank that sleeps 5 ms in one module is named with it, and whether clean runs name nobody.

Run from the repository root: `python -m bench.stragglers [--rounds 20] [LAYOUT ...]`. One torchrun job of 4 gloo ranks
per layout (ddp, fsdp, tp, pipeline) records the same steps over and over: clean, and with the sleep in a rank and a
layer that are drawn anew each time. What `nbkit.load` says of the folder of ranks is counted: whole, and with two ranks
missing. Writes out/bench/stragglers.md.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import nbkit

ROOT = Path(__file__).parents[1]
OUT = ROOT / "out" / "bench" / "stragglers.md"
LAYOUTS = ("ddp", "fsdp", "tp", "pipeline")
RANKS, LAYERS, STEPS, SLEEP_S = 4, 4, 10, 0.005


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("layouts", nargs="*", default=LAYOUTS, help=f"of {', '.join(LAYOUTS)}; all without")
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args(words)
    lines = [
        "| layout | named, all ranks | named, two missing | others named | named in clean runs |",
        "| --- " * 5 + "|",
    ]
    for layout in options.layouts:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(RANKS), __file__]
            environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
            subprocess.run([*command, layout, str(options.rounds), folder], env=environment, check=True)
            lines.append(_row(layout, options.rounds, Path(folder)))
        print(lines[-1], flush=True)
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text("\n".join(lines) + "\n")
    return 0


def _row(layout: str, rounds: int, folder: Path) -> str:
    named = {"whole": 0, "two missing": 0, "others": 0, "clean": 0}
    for number in range(rounds):
        planted = json.loads((folder / f"slow-{number}.json").read_text())
        named["clean"] += len(_stragglers(folder / f"clean-{number}"))
        found = _stragglers(folder / f"slow-{number}")
        named["whole"] += planted in found
        named["others"] += sum(one != planted for one in found)
        # Of a pipeline a rank has no like when all others of its class are gone.
        away = random.Random(number).sample([rank for rank in range(RANKS) if rank != planted[0]], 2)
        for rank in away:
            shutil.rmtree(folder / f"slow-{number}" / f"rank={rank}")
        named["two missing"] += planted in _stragglers(folder / f"slow-{number}")
    whole, missing, others, clean = named.values()
    return f"| {layout} | {whole} of {rounds} | {missing} of {rounds} | {others} | {clean} of {rounds} |"


def _stragglers(folder: Path) -> list[list[object]]:
    findings = nbkit.load(folder).findings
    found = findings[findings["rule"] == "straggler"]
    return [[json.loads(row.evidence)["rank"], row.module] for row in found.itertuples()]


def _job(layout: str, rounds: int, folder: Path) -> None:
    """Records clean and slow steps by turns, in one of the ranks."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    slow: list[object] = []
    step, paths = _step(layout, slow)
    for _ in range(3):
        step()
    drawn = random.Random(1)
    for number in range(rounds):
        for kind in ("clean", "slow"):
            who = drawn.randrange(RANKS) if kind == "slow" else None
            layer = (who if layout == "pipeline" else drawn.randrange(LAYERS)) if who is not None else None
            slow[:] = [layer] if who == rank else []
            with nbkit.optime() as trace:
                for _ in range(STEPS):
                    step()
            trace.save(folder / f"{kind}-{number}")
            if who == rank:
                (folder / f"slow-{number}.json").write_text(json.dumps([who, paths[layer]]))
            dist.barrier()
    dist.destroy_process_group()


class Block(nn.Module):
    """A residual layer that sleeps where its number is in `slow`."""

    def __init__(self, number: int, slow: list[object]) -> None:
        super().__init__()
        self.number, self.slow, self.a, self.b = number, slow, nn.Linear(64, 128), nn.Linear(128, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.number in self.slow:
            time.sleep(SLEEP_S)
        return x + self.b(torch.relu(self.a(x)))


class Chain(nn.Module):
    """Four layers and a head."""

    def __init__(self, slow: list[object]) -> None:
        super().__init__()
        self.layers, self.head = nn.ModuleList(Block(number, slow) for number in range(LAYERS)), nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def _step(layout: str, slow: list[object]) -> tuple[Callable[[], object], dict[object, str]]:
    """Returns a step of a layout, and the path of each layer in its model."""
    x = torch.randn(32, 64)
    if layout == "pipeline":
        model, run, paths = _pipelined(slow, x)
    else:
        model = _sharded(Chain(slow), layout)
        run = lambda: model(x).pow(2).mean().backward()  # noqa: E731
        paths = {number: f"{'module.' * (layout == 'ddp')}layers.{number}" for number in range(LAYERS)}
    optimizer = torch.optim.SGD(model.parameters(), 0.01)

    def step() -> None:
        optimizer.zero_grad()
        run()
        optimizer.step()

    return step, paths


def _pipelined(slow: list[object], x: torch.Tensor) -> tuple[nn.Module, Callable[[], object], dict[object, str]]:
    rank = dist.get_rank()
    model = nn.Sequential(Block(rank, slow))
    stage = PipelineStage(model, rank, RANKS, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, 4, loss_fn=lambda out, target: (out - target).pow(2).mean())
    args, named = [x] * (rank == 0), {"target": x} if rank == RANKS - 1 else {}
    return model, lambda: schedule.step(*args, **named), dict.fromkeys(range(RANKS), "0")


def _sharded(model: Any, layout: str) -> Any:
    if layout == "ddp":
        return nn.parallel.DistributedDataParallel(model)
    if layout == "fsdp":
        for layer in model.layers:
            fully_shard(layer)
        return fully_shard(model)
    ways = {"a": ColwiseParallel, "b": RowwiseParallel}
    plan = {f"layers.{number}.{name}": way() for number in range(LAYERS) for name, way in ways.items()}
    return parallelize_module(model, init_device_mesh("cpu", (RANKS,)), plan)


if __name__ == "__main__":
    if "LOCAL_RANK" in os.environ:
        _job(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
    else:
        sys.exit(main(sys.argv[1:]))
