"""Measures how near opcost predicts memory and time of training steps on an accelerator.

Run from the repository root: `python bench/cost_device.py [--rounds N] [--device H100]`; both sample models in two
sizes. Peaks are held to the most that torch's caching allocator had handed out during a step, less what it hands out at
rest beyond the tensors of the step (workspaces of products). Times are those of the device alone as optime records
them, and of the wall, of which the larger part of a small step is launching; both are predicted from published peaks
and from nbkit.calibrate(). Writes out/bench/cost_device.md.
"""

import argparse
import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import torch
from torch import nn

import nbkit
from bench.devices import named
from bench.harness.ratios import markdown
from nbkit.devices.device import Device
from nbkit.devices.peaks import ALIASES, DEVICES
from sample_models.llama import LLAMA_SMALL, Llama, LlamaConfig
from sample_models.rwkv4 import RWKV4, RWKV4Config

OUT = Path(__file__).parents[1] / "out" / "bench" / "cost_device.md"
# Model and its sizes, batch, positions.
MODELS: dict[str, tuple[Callable[[Any], nn.Module], Any, int, int]] = {
    "llama, small": (Llama, LLAMA_SMALL, 2, 64),
    "rwkv4, small": (RWKV4, RWKV4Config(vocab_size=256, context_length=64, width=128, layers=4, head_qk=32), 2, 64),
    "llama": (Llama, LlamaConfig(32_000, 2_048, 5_504, 8, 16, 8), 8, 1_024),
    "rwkv4": (RWKV4, RWKV4Config(), 8, 1_024),
}
DTYPES = (torch.float32, torch.bfloat16)
OPTIMIZERS = {"SGD": torch.optim.SGD, "AdamW": torch.optim.AdamW}
MEMORY_HEAD = ("model", "dtype", "optimizer", "peak predicted", "measured", "error", "handed out beside it")
TIME_HEAD = (
    "model", "dtype", "peaks", "predicted ms", "device ms", "wall ms", "of the wall", "rank correlation of ops",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="runs of each step (default: 5)")
    parser.add_argument("--device", choices=[*DEVICES, *ALIASES], default="H100", help="whose published peaks to take")
    options = parser.parse_args()
    device = torch.accelerator.current_accelerator()
    if device is None:
        parser.error("torch finds no accelerator here, and there is nothing to measure without one.")
    start = perf_counter()
    own = nbkit.calibrate(device=device.type)
    calls = 0 if own.calls is None else len(own.calls)
    took = f"nbkit.calibrate() measured {calls} calls in {perf_counter() - start:.0f} s."
    memories, times = [], []
    for name in MODELS:
        for dtype in DTYPES:
            for optimizer in OPTIMIZERS:
                step, held = training(name, dtype, optimizer, device)
                memories.append((name, shown(dtype), optimizer, *memory_row(step, held, device)))
                print(*memories[-1], flush=True)
            for peaks in (options.device, own):
                times.append((name, shown(dtype), *time_row(step, peaks, options.rounds)))
                print(*times[-1], flush=True)
            del step, held
    parts = [
        "# What opcost predicts of steps on an accelerator",
        f"{named(device)}, torch {torch.__version__}. {took}",
        markdown(MEMORY_HEAD, memories),
        markdown(TIME_HEAD, times),
    ]
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(text := "\n\n".join(parts) + "\n")
    print(text)


def shown(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def training(
    name: str, dtype: torch.dtype, optimizer: str, device: torch.device
) -> tuple[Callable[[], None], Callable[[], Iterator[torch.Tensor]]]:
    """Returns a training step, run twice, and a function for the tensors that it holds at rest."""
    torch.manual_seed(0)
    make, config, batch, length = MODELS[name]
    with device:
        model = make(config).to(dtype)
        ids, targets = (torch.randint(config.vocab_size, (batch, length)) for _ in range(2))
    stepper = OPTIMIZERS[optimizer](model.parameters(), lr=1e-4)

    def step() -> None:
        stepper.zero_grad()
        model(ids, targets).backward()
        stepper.step()

    def held() -> Iterator[torch.Tensor]:
        yield from (ids, targets, *model.parameters(), *model.buffers())
        yield from (each.grad for each in model.parameters() if each.grad is not None)
        states = (value for entry in stepper.state.values() for value in entry.values())
        yield from (value for value in states if isinstance(value, torch.Tensor) and value.device.type == device.type)

    for _ in range(2):
        step()
    return step, held


def memory_row(
    step: Callable[[], None], held: Callable[[], Iterator[torch.Tensor]], device: torch.device
) -> tuple[str, ...]:
    predicted = int(nbkit.opcost().run(step).memory["allocated_bytes"].max())
    gc.collect()
    torch.accelerator.synchronize()
    memory = torch.get_device_module(device)
    at_rest = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in held()}
    beside = memory.memory_allocated() - sum(at_rest.values())
    memory.reset_peak_memory_stats()
    step()
    torch.accelerator.synchronize()
    measured = memory.max_memory_allocated() - beside
    return f"{predicted:,}", f"{measured:,}", f"{predicted / measured - 1:+.2%}", f"{beside:,}"


def time_row(step: Callable[[], None], peaks: Device | str, rounds: int) -> tuple[str, ...]:
    trace = nbkit.opcost(device=peaks).run(step)
    timed = nbkit.optime(warmup=1).run(step)
    walls = []
    for _ in range(rounds):
        torch.accelerator.synchronize()
        start = perf_counter()
        step()
        torch.accelerator.synchronize()
        walls.append((perf_counter() - start) * 1e3)
    predicted, wall = trace.costs["time_us"].sum() / 1e3, median(walls)
    device_ms = timed.ops.loc[timed.ops["level"] == "kernel", "total_time_us"].sum() / 1e3
    rank = nbkit.compare_cost(trace, timed).attrs["rank_correlation"]
    by = "published" if isinstance(peaks, str) else "calibrated"
    return by, f"{predicted:,.2f}", f"{device_ms:,.2f}", f"{wall:,.2f}", f"{predicted / wall - 1:+.1%}", f"{rank:.3f}"


if __name__ == "__main__":
    main()
