"""Measures what opdiff costs: beside the bare step, the same step in float64 and a copy of every input.

A step bound by computing has a budget. One bound by launching ops has a figure alone: what is done for an op in Python
takes longer than the op. Both are measured on the CPU and on the simulated device, in CPU time, which other processes
disturb least; the float64 step is the CPU's.

Run from the repository root: `python bench/opdiff.py [--rounds N]`. Writes out/bench/opdiff.md.
"""

import argparse
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import nbkit
from bench.harness.ratios import markdown, number, verdict
from bench.harness.steps import TrainingStep, compute_bound, launch_bound
from bench.overhead import build_recorder

OUT = Path(__file__).parents[1] / "out" / "bench" / "opdiff.md"
BUDGETS = {"compute-bound": 1.6}
NAMES = ("bare", "float64", "through a mode", "copying inputs", "opdiff")


class Copying(TorchDispatchMode):
    """Calls ops as they are, after copying their inputs if asked to."""

    def __init__(self, is_copying: bool) -> None:
        super().__init__()
        self.is_copying = is_copying

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self.is_copying and not func.is_view and func.namespace == "aten":
            with torch.no_grad():
                for arg in args:
                    for one in arg if isinstance(arg, list) else [arg]:
                        if isinstance(one, Tensor):
                            one.clone()
        return func(*args, **(kwargs or {}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=60, help="on the launch-bound step, a twentieth on the other")
    asked = parser.parse_args().rounds
    torch.set_num_threads(1)
    build_recorder()
    parts = ["# What comparing a training step costs", f"torch {torch.__version__}, 1 thread."]
    for device in (torch.device("cpu"), nbkit.SimulatedDevice().torch_device):
        for make, count in ((launch_bound, asked), (compute_bound, max(asked // 20, 1))):
            step, wide = make(device), make()
            wide.model.double()
            step.run(), wide.run()
            rounds = [one_round(step, wide) for _ in range(count)]
            parts += [f"## {step.name} on {device.type}: {step.size}", table(rounds, BUDGETS.get(step.name))]
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(text := "\n\n".join(parts) + "\n")
    print(text)


def one_round(step: TrainingStep, wide: TrainingStep) -> tuple[float, ...]:
    """Returns milliseconds of CPU time of each of NAMES, one after the other."""
    runs: tuple[tuple[TrainingStep, AbstractContextManager[Any]], ...] = (
        (step, nullcontext()),
        (wide, nullcontext()),
        (step, Copying(is_copying=False)),
        (step, Copying(is_copying=True)),
        (step, nbkit.opdiff()),
    )
    return tuple(timed(*run) for run in runs)


def timed(step: TrainingStep, recorder: AbstractContextManager[Any]) -> float:
    start = process_time()
    with recorder:
        step.run()
    return (process_time() - start) * 1e3


def table(rounds: list[tuple[float, ...]], budget: float | None) -> str:
    """Writes the medians of each, and the ratio to the base of the budget."""
    ratios = [opdiff / (bare + wide + max(copied - empty, 0)) for bare, wide, empty, copied, opdiff in rounds]
    middles = [median(column) for column in zip(*rounds, strict=True)]
    rows = [(name, f"{number(middle)} ms") for name, middle in zip(NAMES, middles, strict=True)]
    found = median(ratios)
    wanted = "" if budget is None else f", budget {budget}: {verdict(found, budget)}"
    rows.append(("opdiff / (bare + float64 + copies)", f"{found:.2f}{wanted}"))
    return markdown(("run", f"median of {len(rounds)}"), rows)


if __name__ == "__main__":
    main()
