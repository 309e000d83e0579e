"""Measures how near opcost predicts the time of steps and their ops, and what it takes itself.

Run from the repository root: `python bench/cost.py [--rounds N] [--model NAME ...] [--calibrated]`. One thread; this
machine is measured by nbkit.calibrate() first, unless --calibrated takes what that has stored. Times are CPU times of
the process, which other processes disturb less; on an idle machine they are wall times. Writes out/bench/cost.md.
"""

import argparse
import os
import warnings
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import torch

import nbkit
from bench.costs.predicted import compared, table
from bench.costs.speed import growths, speeds
from bench.costs.steps import STEPS
from bench.harness.ratios import figures_table, verdict
from nbkit.devices.device import Device

OUT = Path(__file__).parents[1] / "out" / "bench" / "cost.md"
ERROR_BUDGET, RANK_BUDGET = 0.15, 0.9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, help="runs of each step and peer (default: 7)")
    parser.add_argument("--model", nargs="*", choices=STEPS, help="only these models (default: all)")
    parser.add_argument("--calibrated", action="store_true", help="take what nbkit.calibrate() stored before")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # of models that transformers does not know the loss of
    parts = [
        "# What opcost predicts, and what it takes",
        f"{os.cpu_count()} cores; torch {torch.__version__}, 1 thread.",
    ]
    device, said = calibrated(options.calibrated)
    parts += [said, predictions(device, options.model or [*STEPS], options.rounds)]
    parts += ["## LLaMA-7B, 2,048 tokens, forward and backward", figures_table([*speeds(options.rounds), *growths()])]
    text = "\n\n".join(parts) + "\n"
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(text)
    print(text)


def calibrated(is_stored: bool) -> tuple[Device | str, str]:
    """Returns the device to predict for, and what measuring it took."""
    if is_stored:
        return "cpu", "Predicted from what nbkit.calibrate() had stored."
    wall, cpu = perf_counter(), process_time()
    device = nbkit.calibrate(device="cpu")
    took = f"{perf_counter() - wall:.0f} s ({process_time() - cpu:.0f} s of CPU)"
    assert device.calls is not None
    return device, f"nbkit.calibrate() measured {len(device.calls)} calls in {took}."


def predictions(device: Device | str, models: list[str], rounds: int) -> str:
    """Returns the table of models, and the medians beside what is wanted."""
    found = []
    for model in models:
        torch.manual_seed(0)
        found.append(compared(model, STEPS[model](), device, rounds))
        print(f"{model}: {found[-1].error:+.1%}, {found[-1].rank_correlation:.3f}", flush=True)
    error = median(abs(each.error) for each in found)
    rank = median(each.rank_correlation for each in found)
    without_views = median(each.rank_without_views for each in found)
    is_met = "met" if rank >= RANK_BUDGET else f"missed by {RANK_BUDGET - rank:.3f}"
    return (
        f"{table(found)}\n\nMedian error {error:.1%}, wanted <= {ERROR_BUDGET:.0%}: {verdict(error, ERROR_BUDGET)}. "
        f"Median rank correlation of ops {rank:.3f}, wanted >= {RANK_BUDGET}: {is_met}; "
        f"without views {without_views:.3f}."
    )


if __name__ == "__main__":
    main()
