"""Measures what `nbkit.cost_table` takes for ViT-B/16 beside bare FakeTensorMode, and whether its numbers hold.

Run from the repository root: `python -m bench.cost_table [--rounds N] [--processes N]`. Both passes on a batch
of 8, one thread. First calls run in a process each, after torch, nbkit and the model are there; warm ones interleaved
in one process, each round in another order. FakeTensorMode runs the same attention on a model whose parameters are
fake already, which is what it does fastest; `of the real model` gives it what the table gets. The verdict is that of
the CPU time, which other processes disturb less. Writes out/bench/cost_table.md.
"""

import argparse
import gc
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.attention import SDPBackend, sdpa_kernel

import nbkit
from bench.harness.ratios import Figure, markdown, number, ratio, verdict
from sample_models.vit import VIT_B_16, ViT

OUT = Path(__file__).parents[1] / "out" / "bench" / "cost_table.md"
ROWS = Path(__file__).parents[2] / "shared" / "data" / "vit_b16_symbolic_rows.json"
ANALYZER, PLAIN, FAKE, REAL = "cost_table, analyzer", "cost_table", "FakeTensorMode", "FakeTensorMode of the real model"
FIRST_S, WARM = 3.0, 1.2
COLUMNS = ("accumulate", "incremental", "output", "temp", "param", "backward")


def image() -> torch.Tensor:
    return torch.empty(8, 3, 224, 224)


def real_model() -> nn.Module:
    with torch.device("meta"):
        model = ViT(VIT_B_16)
    return model.to_empty(device="cpu")


def passes(model: nn.Module, x: torch.Tensor) -> None:
    with sdpa_kernel(SDPBackend.MATH):
        out = model(x)
        out.backward(torch.ones_like(out))


def peers() -> dict[str, tuple[nn.Module, Callable[[], object]]]:
    """Returns what is measured by its name, with the model whose gradients it leaves."""
    model, x, mode = real_model(), image(), FakeTensorMode()
    with mode:
        fake, fake_x = ViT(VIT_B_16), image()

    def bare() -> None:
        with mode:
            passes(fake, fake_x)

    def bare_of_real() -> None:
        with FakeTensorMode(allow_non_fake_inputs=True):
            passes(model, x)

    return {
        ANALYZER: (model, lambda: nbkit.cost_table(model, x, convention="analyzer")),
        PLAIN: (model, lambda: nbkit.cost_table(model, x)),
        FAKE: (fake, bare),
        REAL: (model, bare_of_real),
    }


def measured(model: nn.Module, run: Callable[[], object]) -> tuple[float, float]:
    """Returns the seconds of one run, of the clock and of the CPU; it begins without gradients."""
    model.zero_grad()
    gc.collect()
    wall, cpu = perf_counter(), process_time()
    run()
    return perf_counter() - wall, process_time() - cpu


def first(name: str) -> tuple[float, float]:
    """Returns the seconds of the first run in a new process."""
    command = [sys.executable, "-m", "bench.cost_table", "--first", name]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return float(said[-2]), float(said[-1])


def warm(rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Returns the seconds of interleaved rounds, after one that does not count."""
    runs = peers()
    spans: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
    names = list(runs)
    for turn in range(-1, rounds):
        start = turn % len(names)
        for name in (*names[start:], *names[:start]):
            span = measured(*runs[name])
            if turn >= 0:
                spans[name].append(span)
    return spans


def figures(processes: int, rounds: int) -> list[Figure]:
    firsts: dict[str, list[tuple[float, float]]] = {name: [] for name in (ANALYZER, PLAIN, FAKE, REAL)}
    for _ in range(processes):
        for name, spans in firsts.items():
            spans.append(first(name))
    found = [
        Figure(f"{name}, first call", *_middle(spans), "s", FIRST_S if name in (ANALYZER, PLAIN) else None)
        for name, spans in firsts.items()
    ]
    warms = warm(rounds)
    found += [Figure(f"{name}, warm", *_middle(spans), "s") for name, spans in warms.items()]
    for base in (FAKE, REAL):
        (wall, cpu), (base_wall, base_cpu) = (zip(*warms[name], strict=True) for name in (ANALYZER, base))
        budget = WARM if base == FAKE else None
        found.append(Figure(f"{ANALYZER} / {base}, warm", ratio(wall, base_wall), ratio(cpu, base_cpu), "x", budget))
    return found


def _middle(spans: list[tuple[float, float]]) -> tuple[float, float]:
    wall, cpu = (median(column) for column in zip(*spans, strict=True))
    return wall, cpu


def _row(figure: Figure) -> tuple[str, ...]:
    budget = "" if figure.budget is None else f"<= {figure.budget:g} {figure.unit}"
    times = (f"{number(value)} {figure.unit}" for value in (figure.cpu, figure.wall))
    return (figure.what, budget, *times, verdict(figure.cpu, figure.budget))


def equal_numbers() -> str:
    """Returns how many numbers of the table are those that the Analyzer published."""
    if not ROWS.is_file():
        return "The rows that the Analyzer published are not here: numbers were not compared."
    published = json.loads(ROWS.read_text())["reference"]
    table = nbkit.cost_table(real_model(), image(), convention="analyzer")
    names = {name: f"{name}_bytes" for name in COLUMNS} | {"fwd": "forward_flops", "bwd": "backward_flops"}
    pairs = [
        (row[name], made[column])
        for row, made in zip(published, table.to_dict("records"), strict=True)
        for name, column in names.items()
    ]
    return f"{sum(a == b for a, b in pairs):,} of {len(pairs):,} numbers are those that the Analyzer published."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, help="warm runs of each (default: 15)")
    parser.add_argument("--processes", type=int, default=3, help="first runs of each (default: 3)")
    parser.add_argument("--first", help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.first:
        print(*measured(*peers()[options.first]))
        return
    head = ("what", "budget", "CPU", "wall", "verdict")
    table = markdown(head, [_row(figure) for figure in figures(options.processes, options.rounds)])
    text = f"# The table of ViT-B/16\n\ntorch {torch.__version__}, 1 thread. {equal_numbers()}\n\n{table}\n"
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
