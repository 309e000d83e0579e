"""Asks whether compare_times calls a difference where there is one, and none where there is none.

Two runs of one step are compared N times, and N times two of which the second has a module that takes 20 % longer.
With `--load N`, N processes that only spin run beside it: a busy machine.
Run from the repository root: `python bench/compare_times.py [--pairs N] [--load N]`. Writes out/bench/compare_times.md,
with a load compare_times_loaded.md.
"""

import argparse
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from subprocess import Popen
from time import perf_counter_ns

import torch
from torch import nn

import nbkit
from bench.harness.ratios import markdown
from bench.harness.steps import TrainingStep, launch_bound
from nbkit.trace.trace import Trace

OUT = Path(__file__).parents[1] / "out" / "bench"
MODULE = "model.layers.3.mlp"
SLOWER = 0.2
WARMUP, REPEATS = 3, 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=20, help="pairs of each kind (default: 20)")
    parser.add_argument("--load", type=int, default=0, help="processes that spin meanwhile (default: 0)")
    pairs, load = vars(parser.parse_args()).values()
    torch.set_num_threads(1)
    step = launch_bound()
    timed(step)  # the first runs of a process are slower
    wait_us = SLOWER * module_us(timed(step))
    with spinning(load):
        clean = [called(timed(step), timed(step)) for _ in range(pairs)]
        found = [top_row(*pair) for pair in planted_pairs(step, pairs, wait_us)]
    rows = [
        (
            "equal runs: pairs without a row beyond noise, by module",
            f"{sum(not by_module for by_module, _ in clean)} of {pairs}",
        ),
        ("equal runs: pairs without a row beyond noise, by op", f"{sum(not by_op for _, by_op in clean)} of {pairs}"),
        (f"{MODULE} planted 20 % slower: is the top row", f"{sum(top for top, _ in found)} of {pairs}"),
        (f"{MODULE} planted 20 % slower: and is called slower", f"{sum(both for _, both in found)} of {pairs}"),
    ]
    text = (
        f"# Differences of runs\n\n{WARMUP} warm-up runs and {REPEATS} repeats a side, {load} spinning processes.\n\n"
    )
    text += markdown(("what", "count"), rows)
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / ("compare_times_loaded.md" if load else "compare_times.md")).write_text(text + "\n")
    print(text)


@contextmanager
def spinning(processes: int) -> Iterator[None]:
    """Runs so many processes that each keep a core busy."""
    with ExitStack() as stack:
        for _ in range(processes):
            process = stack.enter_context(Popen([sys.executable, "-c", "while True: pass"]))
            stack.callback(process.kill)
        yield


def timed(step: TrainingStep) -> Trace:
    return nbkit.optime(warmup=WARMUP, repeats=REPEATS).run(step.run)


def module_us(trace: Trace) -> float:
    """Returns what a forward call of MODULE takes."""
    calls = trace.ops[(trace.ops["level"] == "module") & (trace.ops["module"] == MODULE)]
    return median(calls["total_time_us"])


def planted_pairs(step: TrainingStep, pairs: int, wait_us: float) -> Iterator[tuple[Trace, Trace]]:
    for _ in range(pairs):
        before = timed(step)
        with slower(step.model.get_submodule(MODULE), wait_us):
            yield before, timed(step)


@contextmanager
def slower(module: nn.Module, wait_us: float) -> Iterator[None]:
    """Makes the module take `wait_us` longer: its forward spins."""

    def spin(*_: object) -> None:
        until = perf_counter_ns() + wait_us * 1e3
        while perf_counter_ns() < until:
            pass

    handle = module.register_forward_pre_hook(spin)
    try:
        yield
    finally:
        handle.remove()


def called(left: Trace, right: Trace) -> tuple[int, int]:
    """Counts rows beyond noise, by module and by op; the traces are let go, as kept memory changes later times."""
    by_module, by_op = (nbkit.compare_times(left, right, by=by)["verdict"] for by in ("module", "op"))
    return tuple(int(verdict.isin(["slower", "faster"]).sum()) for verdict in (by_module, by_op))


def top_row(before: Trace, after: Trace) -> tuple[bool, bool]:
    """Returns whether the planted module is the top row, and whether it is called slower."""
    top = nbkit.compare_times(before, after).iloc[0]
    return top["module"] == MODULE, top["module"] == MODULE and top["verdict"] == "slower"


if __name__ == "__main__":
    main()
