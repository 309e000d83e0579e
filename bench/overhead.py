"""Measures what recording a training step costs: optrace beside torch.profiler, DebugMode and torchlens, and budgets.

Run from the repository root: `python bench/overhead.py [--rounds N] [--quick]`. Writes out/bench/overhead.md and .png.
"""

import argparse
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

import torch

import nbkit
from bench.harness.measure import Measurements, Reading, measure, saving
from bench.harness.peers import (
    BARE,
    DEBUG_MODE,
    EMPTY_MODES,
    OPTRACE,
    OPTRACE_PYTHON,
    PROFILER_SHAPES,
    STATS,
    Peer,
    all_peers,
)
from bench.harness.plot import write_plot
from bench.harness.ratios import Figure, compare, figures_table, markdown, middle, number
from bench.harness.steps import TrainingStep, compute_bound, count_ops, launch_bound
from nbkit.trace.trace import Trace

OUT = Path(__file__).parents[1] / "out" / "bench"
FLOOR = "the step under empty modes / bare (the floor of a recorder in Python)"
STEP, TOTAL = attrgetter("step"), attrgetter("total")


@dataclass(frozen=True)
class Result:
    """One step: its trace, its number of aten ops, and what was measured on it."""

    step: TrainingStep
    trace: Trace
    aten_ops: int
    measured: Measurements


def main() -> None:
    options = arguments()
    build_recorder()
    torch.set_num_threads(options.threads)
    before = os.getloadavg()
    rounds = 3 if options.quick else options.rounds
    peers = all_peers()
    launch = run(launch_bound(), peers, rounds)
    quick_enough = [peer for peer in peers if peer.name != STATS]
    compute = run(compute_bound(), quick_enough, 2 if options.quick else max(3, rounds // 3))
    # One round of the statistics: there they take as long as all the others together.
    stats = run(compute.step, [peer for peer in peers if peer.name in (BARE, STATS)], 1)
    figures = [*launch_figures(launch, rounds), *compute_figures(compute), *stats_figures(stats)]
    text = report(figures, [launch, compute], peers, machine(before, options.threads))
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "overhead.md").write_text(text)
    write_plot({result.step.name: result.measured for result in (launch, compute)}, peers, OUT / "overhead.png")
    print(text)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    rounds = "runs of each peer on the launch-bound step, a third of it on the compute-bound one (default: 15)"
    threads = "torch's threads within an op (default: 1; on a busy machine more of them wait for each other)"
    parser.add_argument("--rounds", type=int, default=15, help=rounds)
    parser.add_argument("--quick", action="store_true", help="three and two rounds: a look, not a measurement")
    parser.add_argument("--threads", type=int, default=1, help=threads)
    return parser.parse_args()


def build_recorder() -> None:
    """Have optrace's native recorder at hand; a machine that cannot build it measures the Python one, and says so."""
    try:
        nbkit.build_recorder()
    except nbkit.RecorderError as error:
        print(error)


def run(step: TrainingStep, peers: Sequence[Peer], rounds: int) -> Result:
    step.run()  # the first step makes the optimizer's state, with ops of its own
    with nbkit.optrace(name=step.name) as trace:
        step.run()
    return Result(step, trace, count_ops(step), measure(step, peers, rounds))


def launch_figures(result: Result, rounds: int) -> list[Figure]:
    """Returns the budgets of the launch-bound step, and of building and saving its frames."""
    return [
        *ratios(result, "the step under optrace / bare", OPTRACE, BARE, 1.7, is_step=True),
        *ratios(result, f"the step under {OPTRACE_PYTHON} / bare", OPTRACE_PYTHON, BARE, None, is_step=True),
        *ratios(result, FLOOR, EMPTY_MODES, BARE, None, is_step=True),
        *ratios(result, f"optrace to frames / {PROFILER_SHAPES} to events()", OPTRACE, PROFILER_SHAPES, 0.08),
        *ratios(result, f"optrace to frames / {DEBUG_MODE}, no table", OPTRACE, DEBUG_MODE, 0.10),
        *per_op(result, rounds),
        *stats_figures(result),
    ]


def compute_figures(result: Result) -> list[Figure]:
    return [
        *ratios(result, "the step under optrace / bare", OPTRACE, BARE, 1.05, is_step=True),
        *ratios(result, "optrace to frames / bare", OPTRACE, BARE, None),
    ]


def stats_figures(result: Result) -> list[Figure]:
    return ratios(result, f"the step under {STATS} / bare", STATS, BARE, None, is_step=True)


def ratios(
    result: Result, what: str, peer: str, base: str, budget: float | None, *, is_step: bool = False
) -> list[Figure]:
    """Returns the figure of one ratio; none where a peer failed, which the list of peers says."""
    found = compare(result.measured, peer, base, (STEP, STEP) if is_step else (TOTAL, TOTAL))
    name = f"{result.step.name}: {what}"
    return [] if found is None else [Figure(name, found.wall_us, found.cpu_us, "x", budget)]


def per_op(result: Result, rounds: int) -> list[Figure]:
    """Returns building and saving the frames, in time and bytes per row of `ops`."""
    ops = len(result.trace.ops)
    build = middle([sample.finish for sample in result.measured.samples[OPTRACE]])
    save, size_bytes = saving(result.trace, rounds)
    spans: dict[str, tuple[Reading, float | None]] = {
        "building": (build, None),
        "saving": (save, None),
        "building and saving": (build + save, 10.0),
    }
    times = [
        Figure(f"{what} the frames, per op", span.wall_us / ops, span.cpu_us / ops, "us", budget)
        for what, (span, budget) in spans.items()
    ]
    return [*times, Figure("size on disk, per op", size_bytes / ops, size_bytes / ops, "bytes", 500.0)]


def report(figures: Sequence[Figure], results: Sequence[Result], peers: Sequence[Peer], about: str) -> str:
    """Returns all tables as Markdown."""
    parts = ["# What recording a training step costs", about, "## Budgets", figures_table(figures)]
    for result in results:
        parts += [f"## {result.step.name}: {result.step.size}", op_counts(result), peer_table(result.measured, peers)]
        parts += [f"{peer} failed. {reason}" for peer, reason in result.measured.failures.items()]
    return "\n\n".join(parts) + "\n"


def op_counts(result: Result) -> str:
    levels = result.trace.ops["level"].value_counts()
    rounds = len(result.measured.samples.get(BARE, ()))
    return (
        f"{result.aten_ops:,} aten ops; {len(result.trace.ops):,} rows of ops ({levels.get('aten', 0):,} aten, "
        f"{levels.get('api', 0):,} api) and {len(result.trace.tensors):,} of tensors. Medians of {rounds} rounds. "
        f"`{OPTRACE}` used its {result.trace.meta['recorder']} recorder."
    )


def peer_table(measured: Measurements, peers: Sequence[Peer]) -> str:
    """Returns times of each peer, and their ratios to the bare run of the same work."""
    head = ("peer", "step, ms", "to result, ms", "CPU, ms", "step / bare", "to result / bare", "CPU / bare")
    seen = (*measured.samples, *measured.failures)
    return markdown(head, [peer_row(measured, peer) for peer in peers if peer.name in seen])


def peer_row(measured: Measurements, peer: Peer) -> list[str]:
    step = compare(measured, peer.name, peer.base, (STEP, STEP))
    total = compare(measured, peer.name, peer.base, (TOTAL, STEP))
    if step is None or total is None:
        return [peer.name, "failed", *[""] * 5]
    samples = measured.samples[peer.name]
    steps, totals = (middle([part(sample) for sample in samples]) for part in (STEP, TOTAL))
    times = (steps.wall_us, totals.wall_us, totals.cpu_us)
    return [
        peer.name,
        *(number(time / 1e3) for time in times),
        *(f"{number(value)} x" for value in (step.wall_us, total.wall_us, total.cpu_us)),
    ]


def machine(before: tuple[float, float, float], threads: int) -> str:
    after = os.getloadavg()
    return (
        f"{os.cpu_count()} cores, load {before[0]:.1f} before and {after[0]:.1f} after; torch {torch.__version__} with "
        f"{threads} thread(s), Python {platform.python_version()}. Ratios are medians of the ratios of each round."
    )


if __name__ == "__main__":
    main()
