"""What opdiff costs: beside the bare step, the same step in float64 and a copy of every input, against its budget; and
with the native recorder beside the one in Python, which takes long.

Run from the repository root: `python bench/opdiff.py [--rounds N]`. Writes out/bench/opdiff.md.
"""

import argparse
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import nbkit
from bench.overhead import build_recorder
from bench.peers import python_recorder
from bench.ratios import markdown, number, ratio, verdict
from bench.steps import TrainingStep, compute_bound, launch_bound
from nbkit.capture.native.library import library

OUT = Path(__file__).parents[1] / "out" / "bench" / "opdiff.md"
BUDGET = 1.5
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
    for make, count in ((launch_bound, asked), (compute_bound, max(asked // 20, 1))):
        step, wide = make(), make()
        wide.model.double()
        step.run(), wide.run()
        rounds = [one_round(step, wide) for _ in range(count)]
        recorders = [both_recorders(step) for _ in range(max(count // 20, 1))] if library() is not None else []
        parts += [f"## {step.name}: {step.size}", table(rounds), recorder_line(recorders)]
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(text := "\n\n".join(parts) + "\n")
    print(text)


def one_round(step: TrainingStep, wide: TrainingStep) -> tuple[float, ...]:
    """Milliseconds of each of NAMES, one after the other."""
    runs: tuple[tuple[TrainingStep, AbstractContextManager[Any]], ...] = (
        (step, nullcontext()),
        (wide, nullcontext()),
        (step, Copying(is_copying=False)),
        (step, Copying(is_copying=True)),
        (step, nbkit.opdiff()),
    )
    return tuple(timed(*run) for run in runs)


def both_recorders(step: TrainingStep) -> tuple[float, float]:
    """Milliseconds of opdiff with the native recorder and with the one in Python."""
    return timed(step, nbkit.opdiff()), timed(step, python_recorder(nbkit.opdiff))


def timed(step: TrainingStep, recorder: AbstractContextManager[Any]) -> float:
    start = perf_counter()
    with recorder:
        step.run()
    return (perf_counter() - start) * 1e3


def recorder_line(rounds: list[tuple[float, float]]) -> str:
    """How much of the Python recorder's time the native one takes."""
    if not rounds:
        return "There is no native recorder here: opdiff was recorded in Python."
    native, python = zip(*rounds, strict=True)
    return (
        f"opdiff with the native recorder takes {ratio(native, python):.2f} of its time with the one in Python "
        f"({number(median(native))} and {number(median(python))} ms, medians of {len(rounds)})."
    )


def table(rounds: list[tuple[float, ...]]) -> str:
    """Medians of each, and the ratio to the budget's base."""
    ratios = [opdiff / (bare + wide + max(copied - empty, 0)) for bare, wide, empty, copied, opdiff in rounds]
    middles = [median(column) for column in zip(*rounds, strict=True)]
    rows = [(name, f"{number(middle)} ms") for name, middle in zip(NAMES, middles, strict=True)]
    found = median(ratios)
    rows.append(("opdiff / (bare + float64 + copies)", f"{found:.2f}, budget {BUDGET}: {verdict(found, BUDGET)}"))
    return markdown(("run", f"median of {len(rounds)}"), rows)


if __name__ == "__main__":
    main()
