"""Measures what it takes to align two executions of thousands of results, beside an edit distance of the same results.

The pair has values that are all different, in branches that the right side runs in another order, some results more
on each side. The peer is the published method in numpy: the edit distance of the sequences of results by shape and
features, row by row. Both run interleaved, in one thread; a ratio is the median of those of the rounds. Then come
models (align_models.py): a LLaMA of 32 layers beside its export, ONNX beside ONNX, and the recorder.

Run from the repository root: `python bench/align.py [--rounds N] [--left N] [--right N] [--without-models]`. Writes
out/bench/align.md.
"""

import argparse
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.harness.ratios import Figure, figures_table, ratio
from nbkit.analysis.align.align import align
from nbkit.trace.executions.execution import Collector, Execution, Result
from nbkit.verbs.alignment.opalign import aligned_trace

OUT = Path(__file__).parents[1] / "out" / "bench" / "align.md"
BUDGET_S, BUDGET_MB = 1.0, 200.0
# Of each model, so many rounds are enough.
MOST_MODEL_ROUNDS = 3
BRANCH = 20
OPS = ("add.Tensor", "mul.Tensor", "view.default", "mm.default", "relu.default")
Arrays = dict[int, npt.NDArray[np.float32]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="runs of each (default: 5)")
    parser.add_argument("--left", type=int, default=5_000, help="results of the left side (default: 5,000)")
    parser.add_argument("--right", type=int, default=4_500, help="results of the right side (default: 4,500)")
    parser.add_argument("--without-models", action="store_true", help="leave the models out")
    options = parser.parse_args()
    left, right = synthetic(options.left, 0), synthetic(options.right, 1)
    parts = [
        "# What aligning two executions takes",
        f"{os.cpu_count()} cores, 1 thread; {len(left.results):,} and {len(right.results):,} results of other values.",
        synthetic_table(left, right, options.rounds),
    ]
    if not options.without_models:
        from bench.align_models import model_parts

        parts += model_parts(min(options.rounds, MOST_MODEL_ROUNDS))
    text = "\n\n".join(parts) + "\n"
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(text)
    print(text)


def synthetic(count: int, side: int) -> Execution:
    """Returns an execution of branches of ops; the right side has them in another order, with noise, other names.

    Every branch reads the same input, a twentieth of the results are views of others.
    """
    branches = list(range(count // BRANCH))
    noise = np.random.default_rng(100 + side)
    if side:
        noise.shuffle(branches)
    collector, values = Collector(), Arrays()
    first = np.random.default_rng(3).standard_normal((4, 16)).astype(np.float32)
    begin = collector.add(Result(0, "input", "x", "float32", first.shape), first)
    ends = []
    for branch in branches:
        generator, source = np.random.default_rng([5, branch]), begin
        for step in range(BRANCH):
            if step == BRANCH - 1:
                value = values[source].reshape(16, 4)
            else:
                value = generator.standard_normal((4, 16)).astype(np.float32)
                value += value * np.float32(1e-7 * side) * noise.choice([-1, 1], value.shape).astype(np.float32)
            number = len(collector.results)
            op = "aten." + (OPS[2] if step == BRANCH - 1 else OPS[step % len(OPS)])
            made = Result(
                number, "op", f"r{number}_{side}", "float32", value.shape, number, 0, (source,), op, f"b{branch}"
            )
            source = collector.add(made, value)
            values[source] = value
        ends.append(source)
    outputs = {str(at): end for at, end in enumerate(sorted(ends))}
    return Execution("left" if side == 0 else "right", "torch", tuple(collector.results), outputs, collector.values)


def edit_distance(left: Execution, right: Execution) -> list[tuple[int, int]]:
    """Returns pairs of results by the edit distance of both sequences: a pair costs how unlike its features are."""
    ours, theirs = _rows(left), _rows(right)
    shapes = [[result.shape for result in side.results] for side in (left, right)]
    known = {shape: at for at, shape in enumerate(dict.fromkeys(shapes[0] + shapes[1]))}
    kinds = [np.array([known[shape] for shape in of_side]) for of_side in shapes]
    steps = np.zeros((len(ours) + 1, len(theirs) + 1), dtype=np.uint8)
    steps[1:, 0], steps[0, 1:] = 1, 2
    gap = 0.6
    before = np.arange(len(theirs) + 1) * gap
    at = np.arange(len(theirs) + 1) * gap
    for row in range(1, len(ours) + 1):
        unlike = np.minimum(np.abs(theirs - ours[row - 1]).mean(axis=1), 1.0) + (kinds[1] != kinds[0][row - 1])
        diagonal, above = np.append(np.inf, before[:-1] + unlike), before + gap
        best = np.minimum(diagonal, above)
        # Steps to the right are a running minimum once the price of them is taken off.
        now = np.minimum.accumulate(best - at) + at
        steps[row] = np.where(now < best, 2, np.where(diagonal <= above, 0, 1))
        before = now
    return list(_traced(steps))[::-1]


def _traced(steps: npt.NDArray[np.uint8]) -> Any:
    row, column = steps.shape[0] - 1, steps.shape[1] - 1
    while row and column:
        step = steps[row, column]
        if step == 0:
            yield row - 1, column - 1
        row, column = row - (step != 2), column - (step != 1)


def _rows(side: Execution) -> npt.NDArray[np.float64]:
    known = [result.features for result in side.results]
    return np.array([(one.mean, one.rms, one.min, one.max) if one else (0.0,) * 4 for one in known], dtype=np.float64)


def synthetic_table(left: Execution, right: Execution, rounds: int) -> str:
    runs: dict[str, Callable[[], Any]] = {
        "align": lambda: align(left, right),
        "with frames and first divergence": lambda: aligned_trace(left, right),
        "edit distance": lambda: edit_distance(left, right),
    }
    walls: dict[str, list[float]] = {name: [] for name in runs}
    cpus: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            wall, cpu = timed(run)
            walls[name].append(wall)
            cpus[name].append(cpu)
    budgets = {"align": BUDGET_S}
    figures = [Figure(name, median(walls[name]), median(cpus[name]), "s", budgets.get(name)) for name in runs]
    figures += [
        Figure("align over edit distance", *(ratio(of["align"], of["edit distance"]) for of in (walls, cpus)), "x"),
        *(Figure(f"memory of {name}", size := peak_mb(runs[name]), size, "MB", BUDGET_MB) for name in list(runs)[:2]),
    ]
    truth = {(one, other) for one, other in true_pairs(left, right)}
    found = {(match.left, match.right) for match in align(left, right).matches.all}
    by_distance = set(edit_distance(left, right))
    said = (
        f"Of {len(truth):,} pairs of equal values align finds {len(truth & found):,} ({len(found - truth):,} others), "
        f"the edit distance {len(truth & by_distance):,} ({len(by_distance - truth):,} others)."
    )
    return f"{figures_table(figures)}\n\n{said}"


def true_pairs(left: Execution, right: Execution) -> Any:
    """Yields pairs of the same branch and step."""
    numbers = [
        {
            (result.module, at % BRANCH if at else 0): result.result_id
            for at, result in enumerate(side.results, start=-1)
            if result.kind == "op"
        }
        for side in (left, right)
    ]
    yield from ((numbers[0][key], numbers[1][key]) for key in numbers[0].keys() & numbers[1].keys())
    yield 0, 0


def timed(run: Callable[[], Any]) -> tuple[float, float]:
    wall, cpu = perf_counter(), process_time()
    run()
    return perf_counter() - wall, process_time() - cpu


def peak_mb(run: Callable[[], Any]) -> float:
    """Returns the most memory that a run holds at once beyond what was there."""
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


if __name__ == "__main__":
    main()
