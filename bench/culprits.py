"""Measures opbisect: planted sets of one to three culprits among hundreds of ops, found exactly, in how many trials.

Each set is a lot of calls of a training step on the simulated device, forward, backward and optimizer, of which each
alone makes the check fail. The check compares loss, gradients and parameters with those of the CPU.

Run from the repository root: `python bench/culprits.py [--sets N]`. Writes out/bench/culprits.md.
"""

import argparse
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import log2
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import nbkit
from bench.harness.ratios import markdown
from nbkit.capture.operators.bisect.kept_state import KeptState
from sample_models.llama import LLAMA_TINY, Llama
from sample_models.rwkv4 import RWKV4, RWKV4_TINY

OUT = Path(__file__).parents[1] / "out" / "bench" / "culprits.md"
SETS, MOST_CULPRITS = 50, 3
MODELS: dict[str, Callable[[], torch.nn.Module]] = {
    "llama": lambda: Llama(LLAMA_TINY),
    "rwkv4": lambda: RWKV4(RWKV4_TINY),
}
CASES = (("llama", "relative_error"), ("rwkv4", "added_noise"))
ORDERS = ("local error", "call")
WANTED = 0.96  # share of the sets that are found exactly
Key = tuple[str, int]


class NumberedCalls(TorchDispatchMode):
    """Counts the calls of each op of a step, wherever they run, and answers whether the running one has a fault."""

    def __init__(self, planted: set[Key]) -> None:
        super().__init__()
        self.planted, self.counts = planted, Counter[str]()
        self.is_planted = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = str(func)
        self.is_planted = (name, self.counts[name]) in self.planted
        self.counts[name] += 1
        try:
            return func(*args, **(kwargs or {}))
        finally:
            self.is_planted = False


@dataclass
class Case:
    """A training step on the device, in which chosen calls go wrong; what it leaves is compared with the CPU's."""

    name: str
    device: nbkit.SimulatedDevice
    kind: str = "relative_error"

    def __post_init__(self) -> None:
        self.expected = self._made(torch.device("cpu"))()
        self.model: torch.nn.Module
        self.run = self._made(self.device.torch_device)

    def _made(self, device: torch.device) -> Callable[[], list[Tensor]]:
        torch.manual_seed(0)
        model = MODELS[self.name]().to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        ids = torch.randint(0, 96, (2, 9))
        inputs, targets = ids[:, :-1].to(device), ids[:, 1:].to(device)
        self.state = [model, optimizer]

        def run() -> list[Tensor]:
            optimizer.zero_grad()
            loss = model(inputs, targets)
            loss.backward()
            optimizer.step()
            parameters = list(model.parameters())
            return [one.detach().cpu().clone() for one in (loss, *(p.grad for p in parameters), *parameters)]

        return run

    def step(self, planted: set[Key]) -> list[Tensor]:
        """Returns loss, gradients and parameters of the step with faults in these calls."""
        mode = NumberedCalls(planted)
        fault = nbkit.Fault("*", self.kind, 0.05, where=lambda tensors: mode.is_planted)
        with self.device.planted(fault), mode:
            return self.run()

    def fails(self, planted: set[Key]) -> bool:
        """Returns whether the check fails with these calls gone wrong; the state stays as it is."""
        kept = KeptState(self.state)
        values = self.step(planted)
        kept.restore()
        return not self.is_right(values)

    def is_right(self, values: list[Tensor]) -> bool:
        """Returns whether they are the CPU's, rounding aside."""
        pairs = zip(values, self.expected, strict=True)
        return all(torch.allclose(value, right, rtol=1e-4, atol=1e-6) for value, right in pairs)


def failing_calls(case: Case) -> tuple[list[Key], int]:
    """Returns the calls of which each alone, gone wrong, makes the check fail, and how many can be replaced."""
    trace = nbkit.opbisect(lambda: case.step(set()), lambda values: False, state=case.state, order="call")
    every = trace.trials["chosen"].iloc[1]
    keys = [(op, number) for op, text in json.loads(every).items() for number in numbers(text)]
    return [key for key in keys if case.fails({key})], len(keys)


def numbers(text: str) -> Iterator[int]:
    """Yields the numbers of calls that a text such as "0,3:8" names."""
    for part in text.split(","):
        start, _, stop = part.partition(":")
        yield from range(int(start), int(stop or int(start) + 1))


def planted_set(case: Case, failing: Sequence[Key], lot: random.Random) -> set[Key]:
    """Returns one to three calls by lot of which each part makes the check fail."""
    while True:
        planted = lot.sample(failing, lot.randint(1, MOST_CULPRITS))
        parts = (part for size in range(1, len(planted) + 1) for part in combinations(planted, size))
        if all(case.fails(set(part)) for part in parts):
            return set(planted)


@dataclass(frozen=True)
class Result:
    """What became of one set: whether it was found exactly, in how many trials, of how many allowed."""

    case: str
    culprits: int
    calls: int
    is_exact: bool
    trials: int

    @property
    def budget(self) -> float:
        return 2 * self.culprits * log2(self.calls) + 8


def bisected(case: Case, planted: set[Key], calls: int, order: Any) -> Result:
    trace = nbkit.opbisect(lambda: case.step(planted), case.is_right, state=case.state, order=order)
    found = {(culprit["op"], culprit["call"]) for culprit in trace.meta["culprits"]}
    return Result(f"{case.name}, {case.kind}", len(planted), calls, found == planted, trace.meta["trials"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=SETS)
    count = parser.parse_args().sets
    torch.set_num_threads(1)
    device, lot = nbkit.SimulatedDevice(), random.Random(0)
    cases = [Case(name, device, kind) for name, kind in CASES]
    known = [failing_calls(case) for case in cases]
    results: dict[str, list[Result]] = {order: [] for order in ORDERS}
    for number in range(count):
        case, (failing, calls) = cases[number % len(cases)], known[number % len(cases)]
        planted = planted_set(case, failing, lot)
        for order in ORDERS:
            results[order].append(bisected(case, planted, calls, order))
    text = report(results, known, count)
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(text)
    print(text)


def report(results: dict[str, list[Result]], known: Sequence[tuple[list[Key], int]], count: int) -> str:
    rows = []
    for order, of in results.items():
        exact = sum(result.is_exact for result in of)
        within = sum(result.trials <= result.budget for result in of)
        trials = [result.trials for result in of]
        passed = "met" if exact >= WANTED * count else "missed"
        rows.append(
            (order, f"{exact} of {count}, {passed}", f"{within} of {count}", f"{median(trials):g}", str(max(trials)))
        )
    heads = ("order", "exact set", "trials <= 2 k log2(n) + 8", "median of trials", "most")
    sizes = ", ".join(
        f"{name}: {calls} calls, {len(failing)} fail alone"
        for (name, _), (failing, calls) in zip(CASES, known, strict=True)
    )
    title = f"# Planted culprits found by bisection\n\ntorch {torch.__version__}; {sizes}."
    return f"{title}\n\n{markdown(heads, rows)}\n"


if __name__ == "__main__":
    main()
