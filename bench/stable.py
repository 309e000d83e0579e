"""Measures opstable: planted faults found, false alarms on correct steps, and what it costs beside opdiff.

Each of the four kinds of faults that give other bits, and right ones, is planted in each op that it can befall, in
training steps of nine models and a larger LLaMA. It has to be found where a call of the op, taken out of the step and
run by hand under the fault, gives other bits: again, in a batch of another size, or with another number of threads. A
false alarm is a call of a correct step that differs from run to run.

Run from the repository root: `python bench/stable.py [--rounds N]`. Writes out/bench/stable.md.
"""

import argparse
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

import nbkit
from bench.harness.ratios import markdown, number, verdict
from bench.harness.steps import TrainingStep, compute_bound, launch_bound
from bench.planted.steps import MODELS, make_step
from nbkit.capture.operators.stable.batches import batch_of, changed
from nbkit.capture.replay.isolated import threads
from nbkit.capture.replay.op_traits import traits_of

OUT = Path(__file__).parents[1] / "out" / "bench" / "stable.md"
BUDGET = 2.0
STEPS = (*MODELS, "llama small")
COLUMNS = {
    "unordered_sum": "run_to_run",
    "split_sum": "batch_invariant",
    "tail_rows": "batch_invariant",
    "thread_sum": "thread_invariant",
}
OPS = "mm,addmm,bmm,baddbmm,mv,dot,sum,mean,convolution"


@dataclass(frozen=True)
class Planted:
    """One fault in one op of a step: whether a call of it gives other bits, and whether it was found."""

    step: str
    op: str
    kind: str
    fits: bool
    is_found: bool
    was_different: bool  # without the fault, too


class Calls(TorchDispatchMode):
    """Keeps the calls of ops on a device, with copies of their inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.of: dict[str, list[tuple[Any, Any, Any]]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kept = tree_map_only(Tensor, lambda one: one.detach().clone(), (args, kwargs or {}))
        self.of.setdefault(str(func), []).append((func, *kept))
        return func(*args, **(kwargs or {}))


def depends(kind: str, func: Any, args: Any, kwargs: Any) -> bool:
    """Returns whether a call under a planted fault gives other bits, in the way that is the fault's."""
    with torch.no_grad():
        out = func(*args, **kwargs).cpu()
        if kind == "unordered_sum":
            return any(not torch.equal(func(*args, **kwargs).cpu(), out) for _ in range(2))
        if kind == "thread_sum":
            with threads(2):
                return not torch.equal(func(*args, **kwargs).cpu(), out)
        batch = batch_of(traits_of(func), args, kwargs, out)
        sizes = [] if batch is None else [*range(1, batch.size)]
        for size in sizes:
            shorter, named = changed(
                traits_of(func), args, kwargs, batch.arguments, lambda rows, size=size: rows[:size]
            )
            if not torch.equal(func(*shorter, **named).cpu(), out[:size]):
                return True
        return False


def made(name: str, device: torch.device | str) -> Any:
    if name not in MODELS:
        return launch_bound(device)
    return make_step(name, "float32", device)


def planted(device: nbkit.SimulatedDevice, name: str) -> Iterator[Planted]:
    """Yields what became of each fault of a step."""
    step = made(name, device.torch_device)
    clean = stability(step.run)
    with Calls() as calls:
        step.run()
    for op in dict.fromkeys(clean["op"]):
        before = clean[clean["op"] == op]
        for kind, column in COLUMNS.items():
            with device.planted(nbkit.Fault(op, kind)):
                fits = any(depends(kind, *call) for call in calls.of.get(op, ()))
                rows = stability(step.run, op)
            differs = [bool((frame[column] == "differs").any()) for frame in (rows, before)]
            yield Planted(name, op, kind, fits, *differs)


def stability(run: Any, ops: str = OPS) -> Any:
    with nbkit.opstable(ops=ops) as trace:
        run()
    return trace.stability


def false_alarms(device: torch.device | str) -> tuple[int, int]:
    """Returns how many calls of correct steps differ from run to run, and how many there are."""
    wrong = calls = 0
    for name in STEPS:
        step = made(name, device)
        with nbkit.opstable() as trace:
            step.run()
        wrong += int((trace.stability["run_to_run"] == "differs").sum())
        calls += len(trace.stability)
    return wrong, calls


def cost(step: TrainingStep, rounds: int) -> tuple[float, float]:
    """Returns milliseconds of CPU time of opdiff and opstable, medians of rounds after one that does not count."""
    times = [(timed(step, nbkit.opdiff()), timed(step, nbkit.opstable())) for _ in range(rounds + 1)][1:]
    return median(one for one, _ in times), median(other for _, other in times)


def timed(step: TrainingStep, recorder: AbstractContextManager[Any]) -> float:
    start = process_time()
    with recorder:
        step.run()
    return (process_time() - start) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10, help="on the launch-bound step, a fifth on the other")
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    device = nbkit.SimulatedDevice()
    costs = [
        (step.name, *cost(step, count))
        for step, count in ((launch_bound(), rounds), (compute_bound(), max(rounds // 5, 1)))
    ]
    alarms = [(place, *false_alarms(place)) for place in ("cpu", "sim")]
    found = [one for name in STEPS for one in planted(device, name)]
    text = report(costs, alarms, found)
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(text)
    print(text)


def report(costs: list[tuple[str, float, float]], alarms: list[tuple[str, int, int]], found: list[Planted]) -> str:
    rows = []
    for kind in COLUMNS:
        of = [one for one in found if one.kind == kind and one.fits]
        count = sum(one.is_found for one in of)
        rows.append((kind, str(len(of)), str(count), str(sum(one.was_different for one in of))))
    missed = [f"- {one.kind} in {one.op} of {one.step}" for one in found if one.fits and not one.is_found]
    ratios = [
        (name, f"{number(diff)} ms", f"{number(stable)} ms", f"{stable / diff:.2f}", verdict(stable / diff, BUDGET))
        for name, diff, stable in costs
    ]
    return (
        "\n\n".join(
            [
                "# Bits that are not the same again",
                f"torch {torch.__version__}, 1 thread, {len(STEPS)} training steps.",
                markdown(("planted", "ops it fits", "found", "of these different without it"), rows),
                "\n".join(missed) or "None was missed.",
                markdown(
                    ("correct steps on", "calls", "differ from run to run"), [(a, str(c), str(b)) for a, b, c in alarms]
                ),
                markdown(("step", "opdiff", "opstable", "ratio", f"budget {BUDGET:g}"), ratios),
            ]
        )
        + "\n"
    )


if __name__ == "__main__":
    main()
