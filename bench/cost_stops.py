"""Says of how many right training steps opcost stops, where, and whether it counts what torch counts when they run.

Run from the repository root: `python bench/cost_stops.py [--only NAME ...] [--values auto]`. Each step runs on shapes
first, then really, under torch's FlopCounterMode with a rule for the attention of the CPU. Writes
out/bench/cost_stops.md.
"""

import argparse
import logging
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import pandas as pd
import torch
from torch.utils.flop_counter import (
    FlopCounterMode,
    conv_flop_count,
    flop_registry,
    sdpa_backward_flop_count,
    sdpa_flop_count,
)

import nbkit
from bench.costs.other_models import OTHER_MODELS
from bench.costs.other_steps import OTHER_STEPS
from bench.costs.steps import Step, trained
from bench.families import FAMILIES
from bench.families.inputs import Family
from nbkit.errors import CostError, first_line

OUT = Path(__file__).parents[1] / "out" / "bench" / "cost_stops.md"
MOST_STOPS, MOST_APART = 4, 0.01
ATTENTION = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu


def grouped(left: Any, right: Any, *_: Any, **__: Any) -> int:
    """Each row of the first matrix meets one of the experts' matrices; in a backward pass each column one row."""
    return int(2 * left[-2] * left[-1] * right[-1])


def convolved(out: Any, x: Any, weight: Any, *args: Any, **__: Any) -> int:
    """Each gradient takes the products of the forward pass: torch's own rule forgets that there are groups."""
    return int(sum(args[-1][:2])) * conv_flop_count(x, weight, out, transposed=args[4])


RULES = {
    torch.ops.aten._grouped_mm: grouped,
    torch.ops.aten.convolution_backward: convolved,
    ATTENTION: lambda q, k, v, *_, **__: sdpa_flop_count(q, k, v),
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward: (
        lambda out, q, k, v, *_, **__: sdpa_backward_flop_count(out, q, k, v)
    ),
}


KNOWN = {str(packet) for packet in (*flop_registry, *RULES)}


def known_to_torch(costs: pd.DataFrame) -> int:
    """Returns the FLOPs of the ops for which torch has a rule, too."""
    packets = costs["op"].str.rpartition(".")[0]
    return int(costs.loc[packets.isin(KNOWN), "flops"].sum())


class Result(NamedTuple):
    """Says how the count of a step ended: the error where it stopped, and FLOPs counted and run."""

    name: str
    error: str
    is_ours: bool
    counted: int
    run: int | None
    seconds: float


def of_family(family: Family) -> Step:
    """Returns the training step of a family."""
    model, loss = family()
    return trained(model, loss)


def steps() -> Iterator[tuple[str, Callable[[], Step]]]:
    yield from OTHER_STEPS.items()
    for name, family in {**FAMILIES, **OTHER_MODELS}.items():
        yield name, partial(of_family, family)


def flops_of(step: Step) -> int | None:
    """Returns the FLOPs that torch counts in a step that runs; null where its counter cannot."""
    try:
        with FlopCounterMode(display=False, custom_mapping=RULES) as counter:
            step()
        return int(counter.get_total_flops())
    except (RuntimeError, AssertionError):
        step()  # torch's counter follows modules by hooks, which not every backward pass has; else the step fails, too
        return None


def result_of(name: str, make: Callable[[], Step], values: Any) -> Result | None:
    """Counts one step, and runs it; returns null for one that does not run itself."""
    torch.manual_seed(0)
    try:
        step = make()
    except Exception as error:
        print(f"{name} cannot be made: {type(error).__name__}: {first_line(error)}", flush=True)
        return None
    ended: Exception | None = None
    counted, started = 0, process_time()
    torch.manual_seed(1)
    try:
        counted = known_to_torch(nbkit.opcost(values=values).run(step).costs)
    except Exception as caught:
        ended = caught
    seconds = process_time() - started
    torch.manual_seed(1)
    try:
        run = flops_of(step)
    except Exception as caught:
        print(f"{name} does not run: {type(caught).__name__}: {first_line(caught)}", flush=True)
        return None
    text = "" if ended is None else f"{type(ended).__name__}: {first_line(ended)}"
    return Result(name, text, ended is None or isinstance(ended, CostError), counted, run, seconds)


def apart(result: Result) -> float:
    """Returns by which share the FLOPs that were counted differ from those that ran; 0 where torch counts none."""
    return 0.0 if result.run is None else abs(result.counted - result.run) / max(result.run, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", help="only these steps (default: all)")
    parser.add_argument("--values", default="auto", help="as in nbkit.opcost (default: auto)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    results = []
    for name, make in steps():
        if options.only and name not in options.only:
            continue
        result = result_of(name, make, options.values)
        if result is not None:
            results.append(result)
            print(f"{name}: {result.error or f'{apart(result):.2%} apart'} ({result.seconds:.1f} s)", flush=True)
    text = table(results)
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(text)
    print(text.splitlines()[2])


def table(results: list[Result]) -> str:
    """Writes all results, and how many stop, are not counted as torch counts them, or end with a bare error."""
    stops = [result for result in results if result.error]
    bare = [result for result in stops if not result.is_ours]
    far = [result for result in results if not result.error and apart(result) > MOST_APART]
    said = (
        f"Of {len(results)} steps {len(stops)} stop (wanted: at most {MOST_STOPS} of 79), {len(bare)} by an error of "
        f"torch or Python; {len(far)} are more than {MOST_APART:.0%} from what torch counts in the step that runs."
    )
    runs = ["" if each.run is None else f"{each.run:,}" for each in results]
    rows = [
        f"| {each.name} | {each.error or f'{each.counted:,}'} | {run} | {each.seconds:.1f} |"
        for each, run in zip(results, runs, strict=True)
    ]
    head = ["| step | FLOPs counted, or why it stopped | FLOPs run | CPU s |", "|---|---|---|---|"]
    return "\n".join(["# Steps that opcost counts", "", said, "", *head, *rows]) + "\n"


if __name__ == "__main__":
    main()
