"""Whether compare_times calls a difference where there is one, and none where there is none.

Two runs of one step are compared N times, and N times two of which the second has a module that takes 20 % longer.
Run from the repository root: `python bench/compare_times.py [--pairs N]`. Writes out/bench/compare_times.md.
"""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter_ns

import pandas as pd
import torch
from torch import nn

import nbkit
from bench.ratios import markdown
from bench.steps import TrainingStep, launch_bound
from nbkit.trace import Trace

OUT = Path(__file__).parents[1] / "out" / "bench" / "compare_times.md"
MODULE = "model.layers.3.mlp"
SLOWER = 0.2
WARMUP, REPEATS = 3, 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=20, help="pairs of each kind (default: 20)")
    pairs = parser.parse_args().pairs
    torch.set_num_threads(1)
    step = launch_bound()
    timed(step)  # the first runs of a process are slower
    clean = {by: sum(beyond(equal, by) == 0 for equal in equal_pairs(step, pairs)) for by in ("module", "op")}
    found = [top_row(*pair) for pair in planted_pairs(step, pairs)]
    rows = [
        ("equal runs: pairs without a row beyond noise, by module", f"{clean['module']} of {pairs}"),
        ("equal runs: pairs without a row beyond noise, by op", f"{clean['op']} of {pairs}"),
        (f"{MODULE} planted 20 % slower: is the top row", f"{sum(top for top, _ in found)} of {pairs}"),
        (f"{MODULE} planted 20 % slower: and is called slower", f"{sum(both for _, both in found)} of {pairs}"),
    ]
    text = f"# Differences of runs\n\n{WARMUP} warm-up runs and {REPEATS} repeats a side.\n\n" + markdown(
        ("what", "count"), rows
    )
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(text + "\n")
    print(text)


def timed(step: TrainingStep) -> Trace:
    return nbkit.optime(warmup=WARMUP, repeats=REPEATS).run(step.run)


def equal_pairs(step: TrainingStep, pairs: int) -> Iterator[tuple[Trace, Trace]]:
    for _ in range(pairs):
        yield timed(step), timed(step)


def planted_pairs(step: TrainingStep, pairs: int) -> Iterator[tuple[Trace, Trace]]:
    module = step.model.get_submodule(MODULE)
    for _ in range(pairs):
        before = timed(step)
        calls = before.ops[(before.ops["level"] == "module") & (before.ops["module"] == MODULE)]
        with slower(module, SLOWER * median(calls["total_time_us"])):
            yield before, timed(step)


@contextmanager
def slower(module: nn.Module, wait_us: float) -> Iterator[None]:
    """The module takes `wait_us` longer: its forward spins."""

    def spin(*_: object) -> None:
        until = perf_counter_ns() + wait_us * 1e3
        while perf_counter_ns() < until:
            pass

    handle = module.register_forward_pre_hook(spin)
    try:
        yield
    finally:
        handle.remove()


def beyond(pair: tuple[Trace, Trace], by: str) -> int:
    return int(is_beyond(nbkit.compare_times(*pair, by=by)).sum())


def is_beyond(differences: pd.DataFrame) -> pd.Series:
    return differences["verdict"].isin(["slower", "faster"])


def top_row(before: Trace, after: Trace) -> tuple[bool, bool]:
    """Whether the planted module is the top row, and whether it is called slower."""
    top = nbkit.compare_times(before, after).iloc[0]
    return top["module"] == MODULE, top["module"] == MODULE and top["verdict"] == "slower"


if __name__ == "__main__":
    main()
