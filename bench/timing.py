"""Measures what optime costs and how true its times are: beside torch.profiler, against the budgets.

Run from the repository root: `python bench/timing.py [--rounds N] [--only-agreement]`. Writes out/bench/timing.md.
"""

import argparse
import gc
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from itertools import permutations
from operator import attrgetter
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd
import torch
from torch.profiler import ProfilerActivity, profile

import nbkit
from bench.harness.measure import Measurements, measure
from bench.harness.peers import BARE, Peer, all_peers
from bench.harness.ratios import Figure, compare, figures_table, markdown
from bench.harness.steps import TrainingStep, compute_bound, launch_bound
from nbkit.capture.profiler.kineto import muted_stderr

OUT = Path(__file__).parents[1] / "out" / "bench" / "timing.md"
STEP, TOTAL = attrgetter("step"), attrgetter("total")
PROFILER, PROFILER_SHAPES = "torch.profiler", "torch.profiler, record_shapes"
OPTIME, SHAPES, MEMORY, STACKS = "optime", "optime, shapes", "optime, memory", "optime, stacks"
HEAVIEST = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9, help="runs of each peer (default: 9)")
    parser.add_argument("--only-agreement", action="store_true", help="leave out costs and sums")
    options = parser.parse_args()
    torch.set_num_threads(1)
    parts = ["# What timing a training step costs", f"{os.cpu_count()} cores; torch {torch.__version__}, 1 thread."]
    for step in (launch_bound(), compute_bound()):
        step.run()
        few = options.rounds if step.name == "launch-bound" else max(3, options.rounds // 3)
        parts.append(f"## {step.name}: {step.size}")
        parts += [] if options.only_agreement else [costs(step, few), sums(step, few)]
        parts.append(agreement(step, 4 * few))
    text = "\n\n".join(parts) + "\n"
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(text)
    print(text)


def costs(step: TrainingStep, rounds: int) -> str:
    """Compares the step under each recorder with the bare one, and the time to frames with torch.profiler's events."""
    peers = [peer for peer in all_peers() if peer.name in (BARE, PROFILER, PROFILER_SHAPES)]
    peers += [
        Peer(OPTIME, nbkit.optime),
        Peer(SHAPES, partial(nbkit.optime, shapes=True)),
        Peer(MEMORY, partial(nbkit.optime, memory=True)),
        Peer(STACKS, partial(nbkit.optime, stacks=True)),
    ]
    measured = measure(step, peers, rounds)
    figures = [
        figure(
            measured, f"the step under {peer.name} / bare", peer.name, BARE, STEP, 1.4 if peer.name == OPTIME else None
        )
        for peer in peers[1:]
    ]
    if step.name == "launch-bound":  # where the step itself takes seconds, both are the step
        for name, base, budget in ((OPTIME, PROFILER, 0.3), (SHAPES, PROFILER_SHAPES, None)):
            figures.append(figure(measured, f"{name} to frames / {base} to events()", name, base, TOTAL, budget))
    return figures_table([found for found in figures if found is not None])


def figure(
    measured: Measurements, what: str, peer: str, base: str, part: Callable[..., Any], budget: float | None
) -> Figure | None:
    found = compare(measured, peer, base, (part, part))
    return None if found is None else Figure(what, found.wall_us, found.cpu_us, "x", budget)


def sums(step: TrainingStep, rounds: int) -> str:
    """Returns how much of the step's wall time the self times, and the rows right below the root, add up to."""
    shares = []
    for _ in range(rounds):
        with nbkit.optime() as trace:
            step.run()
        ops, wall_us = trace.ops, trace.meta["wall_us"]
        below = ops.loc[ops["parent_id"] == 0, "total_time_us"].sum()
        shares.append((ops["self_time_us"].sum() / wall_us, below / wall_us))
    names = ("self times of all rows / wall time", "modules, backward pass and optimizer / wall time")
    rows = [(name, f"{median(column):.4f}") for name, column in zip(names, zip(*shares, strict=True), strict=True)]
    return markdown(("sum", "median"), rows)


def agreement(step: TrainingStep, rounds: int) -> str:
    """Returns self CPU time of the heaviest ops: ours against key_averages() of plain torch.profiler, runs interleaved.

    The profiler runs twice in every round: what it differs from itself by is the scatter of the machine. Ratios are
    taken within a round, and each of the six orders of the three comes equally often: what ran before counts.
    """
    runs: list[tuple[Callable[[TrainingStep], dict[str, float]], list[dict[str, float]]]]
    runs = [(timed_ours, []), (timed_theirs, []), (timed_theirs, [])]
    orders = list(permutations(runs))
    for number in range(-(-rounds // len(orders)) * len(orders)):
        for run, found in orders[number % len(orders)]:
            step.run()
            gc.collect()
            found.append(run(step))
    ours, first, second = (pd.DataFrame(found) for _, found in runs)
    theirs = (first + second) / 2
    heaviest = theirs.median().nlargest(HEAVIEST).index
    rows = [
        (
            name,
            f"{ours[name].median():,.0f}",
            f"{theirs[name].median():,.0f}",
            f"{(ours[name] / theirs[name]).median():.3f}",
            f"{(second[name] / first[name]).median():.3f}",
        )
        for name in heaviest
    ]
    headers = ("op, self CPU time in us", "optime", "key_averages()", "ratio", "key_averages() / itself")
    return f"Medians of {len(ours)} rounds.\n\n" + markdown(headers, rows)


def timed_ours(step: TrainingStep) -> dict[str, float]:
    with nbkit.optime() as trace:
        step.run()
    ops = trace.ops[trace.ops["level"] == "aten"]
    names = ["::".join(name.split(".")[:2]) for name in ops["op"]]
    return ops["self_time_us"].groupby(names).sum().to_dict()


def timed_theirs(step: TrainingStep) -> dict[str, float]:
    profiler: AbstractContextManager[profile] = profile(activities=[ProfilerActivity.CPU])
    with muted_stderr([]), profiler as running:
        step.run()
    return {row.key: row.self_cpu_time_total for row in running.key_averages() if row.key.startswith("aten::")}


if __name__ == "__main__":
    main()
