"""Measures what opcost itself takes on a LLaMA of 7B parameters, beside bare fake tensors and torch's FLOP counter."""

import gc
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode

import nbkit
from bench.harness.measure import Reading, now
from bench.harness.ratios import Figure, ratio
from sample_models.llama import LLAMA_7B, Llama, LlamaConfig

FAKE, COUNTED, OPCOST, TIMED = "FakeTensorMode", "FakeTensorMode, FlopCounterMode", "opcost", "opcost, device H100"
BUDGET_S, BUDGET_MIB = 1.0, 80.0
# Machines differ: the second was set where FakeTensorMode alone took 0.54 s.
BUDGET_RATIO = BUDGET_S / 0.54
TOKENS = 2_048
TINY = LlamaConfig(96, 32, 88, 2, 4, 2)
# Writing 5 here makes the largest resident memory of the process what it is now.
CLEARED, RESET_PEAK = Path("/proc/self/clear_refs"), "5"
Run = Callable[[LlamaConfig, int], object]


def step(config: LlamaConfig, tokens: int) -> None:
    """Builds the model and runs forward and backward on one sequence."""
    model = Llama(config)
    model(torch.zeros(1, tokens, dtype=torch.long)).mean().backward()


def fake(config: LlamaConfig, tokens: int) -> None:
    with FakeTensorMode():
        step(config, tokens)


def counted(config: LlamaConfig, tokens: int) -> None:
    with FakeTensorMode(), FlopCounterMode(display=False):
        step(config, tokens)


def costed(config: LlamaConfig, tokens: int) -> None:
    with nbkit.opcost() as trace:
        step(config, tokens)
    _ = trace.costs


def timed(config: LlamaConfig, tokens: int) -> None:
    with nbkit.opcost(device="H100") as trace:
        step(config, tokens)
    _ = trace.costs


PEERS: dict[str, Run] = {FAKE: fake, COUNTED: counted, OPCOST: costed, TIMED: timed}


def speeds(rounds: int, config: LlamaConfig = LLAMA_7B, tokens: int = TOKENS) -> list[Figure]:
    """Returns medians and ratios of interleaved rounds, each in another order, after one that does not count."""
    spans: dict[str, list[Reading]] = {name: [] for name in PEERS}
    names = list(PEERS)
    for number in range(-1, rounds):
        start = number % len(names)
        for name in (*names[start:], *names[:start]):
            gc.collect()
            before = now()
            PEERS[name](config, tokens)
            if number >= 0:
                spans[name].append(now().since(before))
    figures = [
        Figure(
            f"{name} to its result",
            median(span.wall_us for span in of) / 1e6,
            median(span.cpu_us for span in of) / 1e6,
            "s",
            BUDGET_S if name == OPCOST else None,
        )
        for name, of in spans.items()
    ]
    for base in (FAKE, COUNTED):
        pairs = [([span.wall_us for span in spans[name]], [s.cpu_us for s in spans[name]]) for name in (OPCOST, base)]
        (wall, cpu), (base_wall, base_cpu) = pairs
        budget = BUDGET_RATIO if base == FAKE else None
        figures.append(Figure(f"{OPCOST} / {base}", ratio(wall, base_wall), ratio(cpu, base_cpu), "x", budget))
    return figures


def growths() -> list[Figure]:
    """Returns by how much a process grows at most in each peer's first run, after imports and a tiny run of it."""
    figures = []
    for name in (FAKE, COUNTED, OPCOST):
        command = [sys.executable, "-m", "bench.costs.speed", name]
        mib = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1])
        figures.append(
            Figure(f"{name}: memory above the process", mib, mib, "MiB", BUDGET_MIB if name == OPCOST else None)
        )
    return figures


def main(name: str) -> None:
    PEERS[name](TINY, 16)
    gc.collect()
    CLEARED.write_text(RESET_PEAK)
    before = resident_kib("VmRSS")
    PEERS[name](LLAMA_7B, TOKENS)
    print((resident_kib("VmHWM") - before) / 1024)


def resident_kib(name: str) -> int:
    """Returns the memory of this process that is resident (VmRSS), or was at most (VmHWM)."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return int(line.split()[1])


if __name__ == "__main__":
    main(sys.argv[1])
