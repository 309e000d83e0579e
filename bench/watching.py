"""Measures what `python -m nbkit audit` costs while a script runs: 200 steps watched beside 200 bare ones.

Run from the repository root: `python bench/watching.py [--rounds N]`. The steps are those of `steps.py`, and a small
one. Writes out/bench/watching.md. What running steps again costs afterwards is no part of it.
"""

import argparse
import gc
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import torch
from torch import nn

from bench.harness.measure import Reading, now
from bench.harness.ratios import Figure, figures_table, ratio
from bench.harness.steps import compute_bound, launch_bound
from nbkit.capture.watch.state import freeze_torch
from nbkit.command_line.audit import KEEP, size_in_bytes
from nbkit.command_line.audit_session import WatchedSteps
from sample_models.rwkv4 import RWKV4, RWKV4_TINY

OUT = Path(__file__).parents[1] / "out" / "bench" / "watching.md"
STEPS, BUDGET = 200, 1.1
Step = Callable[[], object]


def small() -> Step:
    """Returns a step of a model of three layers, which takes less than a millisecond."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters())
    x, y = torch.randn(64, 32), torch.randn(64, 1)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()

    return step


def rwkv4() -> Step:
    """Returns a step of the smaller sample model."""
    torch.manual_seed(0)
    model = RWKV4(RWKV4_TINY)
    optimizer = torch.optim.AdamW(model.parameters())
    ids = torch.randint(RWKV4_TINY.vocab_size, (2, RWKV4_TINY.context_length))

    def step() -> None:
        optimizer.zero_grad()
        model(ids, ids.roll(-1, 1)).backward()
        optimizer.step()

    return step


# The compute-bound step takes seconds: fewer of them tell, but not so few that the first copy of its gigabyte does.
STEPS_OF: dict[str, tuple[Callable[[], Step], int]] = {
    "small": (small, STEPS),
    "RWKV4_TINY": (rwkv4, STEPS),
    "launch-bound": (lambda: launch_bound().run, STEPS),
    "compute-bound": (lambda: compute_bound().run, 40),
}


def main(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--step", choices=STEPS_OF, action="append")
    options = parser.parse_args(words)
    torch.set_num_threads(1)
    freeze_torch()  # as the command does before it runs the script
    figures = []
    for name in options.step or STEPS_OF:
        make, count = STEPS_OF[name]
        step = make()
        for _ in range(3):
            step()
        spans: dict[bool, list[Reading]] = {False: [], True: []}
        for number in range(options.rounds):
            for is_watched in (False, True) if number % 2 else (True, False):
                spans[is_watched].append(_run(step, count, is_watched))
        wall, cpu = (
            ratio([getattr(one, clock) for one in spans[True]], [getattr(one, clock) for one in spans[False]])
            for clock in ("wall_us", "cpu_us")
        )
        bare = median(one.wall_us for one in spans[False]) / count / 1e3
        figures.append(Figure(f"{name} ({bare:.3g} ms a step): {count} steps, watched / bare", wall, cpu, "x", BUDGET))
        print(figures_table(figures[-1:]), flush=True)
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(f"# What watching steps costs\n\n{figures_table(figures)}\n")


def _run(step: Step, count: int, is_watched: bool) -> Reading:
    gc.collect()
    frame = sys._getframe()
    start = now()
    if is_watched:
        watched = WatchedSteps(size_in_bytes(KEEP), None)
        for number in range(count):
            watched.begin(number, frame)
            step()
            watched.end(None, is_last=False)
        watched.finish()
    else:
        for _ in range(count):
            step()
    return now().since(start)


if __name__ == "__main__":
    main(sys.argv[1:])
