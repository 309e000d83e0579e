"""Asks whether opdiff names the op with a planted fault, and no other: on both sample models and others, with AdamW.

Run from the repository root: `python bench/faults.py [--quick | --every-size] [--ops-per-kind N] [--seed N]`. Writes
out/bench/faults.md and ends with status 1 where a target is missed. Every kind of fault is planted in ops whose result
it can change, of each model so many for each kind (drawn by lot, like their call and the size of the fault; 0 takes all
of them, which are thousands) of one training step; see bench/planted/lot.py.

The device itself says how far a fault moved the result, beside what rounding of the result and of the inputs may do to
it (`rounding_ratio` of its report). More than 8 times: detectable, and the target is that the op with the fault is the
first and only mismatch. From 1 to 8: within the margin that right kernels need. Below: within rounding, which no
comparison tells apart. Random ops are not run again, only their distribution is judged: a fault that draws numbers
wrongly counts as detectable where there are 1,000 of them; others are listed apart, as other numbers may be right ones.
Faults that changed no bit, or were never met, are not counted.
"""

import argparse
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter

import torch

import nbkit
from bench.planted.lot import faults_of
from bench.planted.runs import Outcome, mismatches, outcome_of
from bench.planted.steps import AUTOCAST, DTYPES, MODELS, make_step
from bench.planted.tables import (
    Clean,
    Place,
    clean_table,
    detectable,
    share,
    table_of,
    totals,
    undetectable,
    wrong_verdicts,
)

OUT = Path(__file__).parents[1] / "out" / "bench" / "faults.md"
SHARE, FEWEST, FEWEST_KINDS, FEWEST_CLEAN = 0.99, 120, 25, 12
PLANTED = [(model, dtype) for model in MODELS for dtype in ("float32", "bfloat16")]
CLEAN = [(model, dtype) for model in MODELS for dtype in (*DTYPES, AUTOCAST)]
QUICK = [("conv", "float32"), ("transformer", "bfloat16")]
# By default, so that all of it takes a quarter of an hour.
OPS_PER_KIND = 3
Results = dict[Place, list[Outcome]]


def main() -> None:
    options = _options()
    started = perf_counter()
    places = (QUICK, QUICK) if options.quick else (PLANTED, CLEAN)
    planted, clean = ([place for place in ones if place[0] in (options.model or MODELS)] for ones in places)
    with ProcessPoolExecutor(options.processes, get_context("spawn"), _one_thread) as pool:
        # All at once, the long ones first: two cores are busy to the end.
        found = {place: pool.submit(faulty_runs, *place, options) for place in planted}
        right = {place: pool.submit(clean_run, *place, options.seed) for place in clean}
        results = {place: future.result() for place, future in found.items()}
        steps = {place: future.result() for place, future in right.items()}
    missed = list(targets_missed(results, steps, is_whole=not (options.quick or options.model)))
    text = report(results, steps, missed, perf_counter() - started)
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(text)
    print(text)
    sys.exit(bool(missed))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0, help="of the lot that draws calls and sizes, and of the steps")
    extent = parser.add_mutually_exclusive_group()
    names = " and ".join("/".join(place) for place in QUICK)
    extent.add_argument("--quick", action="store_true", help=f"only {names}; counts are not asked for")
    extent.add_argument("--every-size", action="store_true", help="each kind in each of its sizes, not in one by lot")
    parser.add_argument("--ops-per-kind", type=int, default=OPS_PER_KIND, help="of each model and dtype; 0: all")
    parser.add_argument("--model", action="append", choices=MODELS, help="only this one; may be given several times")
    parser.add_argument("--processes", type=int, default=2)
    return parser.parse_args()


def _one_thread() -> None:
    torch.set_num_threads(1)


def clean_run(model: str, dtype: str, seed: int) -> Clean:
    """Returns a step without a fault, on the device."""
    step = make_step(model, dtype, nbkit.SimulatedDevice().torch_device, seed)
    with nbkit.opdiff() as trace:
        step.run()
    return Clean(len(trace.diffs), trace.diffs["noise_ratio"].max(), tuple(mismatches(trace)["op"]))


def faulty_runs(model: str, dtype: str, options: argparse.Namespace) -> list[Outcome]:
    """Returns the outcome of every fault of a step, each in a step of its own; without those that changed nothing."""
    device = nbkit.SimulatedDevice()
    place = device.torch_device
    seed, most = options.seed, options.ops_per_kind or None
    faults = faults_of(make_step(model, dtype, place, seed), seed, options.every_size, most)
    outcomes = [outcome_of(device, make_step(model, dtype, place, seed), fault) for fault in faults]
    return [outcome for outcome in outcomes if outcome is not None]


def targets_missed(results: Results, clean: dict[Place, Clean], is_whole: bool) -> Iterator[str]:
    """Yields what falls short, in words; the counts are asked of the whole benchmark only."""
    large = detectable(results)
    if share(large) < SHARE:
        yield f"{share(large):.2%} of the detectable faults are the first and only mismatch, wanted {SHARE:.0%}"
    if blamed := ["/".join(place) for place, one in clean.items() if one.wrong]:
        yield f"clean steps with mismatches: {', '.join(blamed)}"
    kinds = {(outcome.fault.op, outcome.fault.kind) for outcome in large}
    counts = (
        (len(large), FEWEST, "detectable faults"),
        (len(kinds), FEWEST_KINDS, "pairs of op and kind"),
        (len(clean), FEWEST_CLEAN, "clean steps"),
    )
    yield from (f"{count} {what}, wanted {fewest}" for count, fewest, what in counts if is_whole and count < fewest)


def report(results: Results, clean: dict[Place, Clean], missed: list[str], seconds: float) -> str:
    """Returns all of it in Markdown."""
    wrong, small = wrong_verdicts(results), undetectable(results)
    parts = ["# Planted faults and what opdiff makes of them", f"torch {torch.__version__}, {seconds:.0f} s."]
    parts += ["Targets: " + ("; ".join(missed) or "met") + ".", totals(results, clean)]
    parts += ["## Wrong verdicts", "\n".join(f"- {line}" for line in wrong) or "None."]
    for place, outcomes in results.items():
        parts += [f"## {' '.join(place)}", table_of(outcomes)]
    parts += ["## Steps without a fault", clean_table(clean)]
    parts += [f"## Not detectable: {len(small)}", "\n".join(f"- {line}" for line in small) or "None."]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    main()
