"""Compares the memory that opcost predicts with that of steps that run: models of many families, four optimizers.

Saved bytes are held to a real forward pass, the peak of a training step to the record of allocations that torch's
profiler makes of the step, on top of what model and optimizer hold before it. What a kernel allocates and frees while
it runs is left out of it: that is no tensor of the step. torch's MemTracker stands beside it, which sees gradients
summed into new tensors that a step without a mode sums in place, and cannot follow steps with frozen parameters.

Run from the repository root: `python bench/cost_memory.py [NAME ...] [--list]`. Writes out/bench/cost_memory.md.
"""

import argparse
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Set
from fnmatch import fnmatch
from itertools import accumulate
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributed._tools.mem_tracker import MemTracker
from torch.profiler import ProfilerActivity, profile

import nbkit
from bench.families import FAMILIES
from bench.families.inputs import Family, Loss
from sample_models.llama import LLAMA_TINY, Llama
from sample_models.rwkv4 import RWKV4, RWKV4_TINY


def sample(model: Callable[[Any], nn.Module], config: Any) -> Family:
    """A family of a sample model: next tokens of a text of 17 tokens."""

    def make() -> tuple[nn.Module, Loss]:
        torch.manual_seed(0)
        made, tokens = model(config), torch.randint(config.vocab_size, (2, 18))

        def loss() -> Tensor:
            return F.cross_entropy(made(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())

        return made, loss

    return make


# Both sample models beside the families: their steps are the ones that the other benches take.
MODELS = {**FAMILIES, "sample LLaMA": sample(Llama, LLAMA_TINY), "sample RWKV-4": sample(RWKV4, RWKV4_TINY)}
OUT = Path(__file__).parents[1] / "out" / "bench" / "cost_memory.md"
OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=1e-3),
    "AdamW": lambda parameters: torch.optim.AdamW(parameters, foreach=False),
    "AdamW, foreach": lambda parameters: torch.optim.AdamW(parameters, foreach=True),
    "Adafactor": lambda parameters: torch.optim.Adafactor(parameters),
}


class Row(NamedTuple):
    """Holds what was predicted and measured of one step, in bytes."""

    name: str
    optimizer: str
    peak: int
    allocated: int
    tracked: int | None
    saved: int
    really_saved: int

    @property
    def error(self) -> float:
        """The predicted peak's error, as a part of the measured one."""
        return self.peak / self.allocated - 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["*"], help="families, as patterns")
    parser.add_argument("--list", action="store_true", help="print the families' names")
    options = parser.parse_args()
    names = [name for name in MODELS if any(fnmatch(name, pattern) for pattern in options.names)]
    if options.list:
        print("\n".join(names))
        return 0
    warnings.simplefilter("ignore")
    rows, refused = [], {}
    for name in names:
        for optimizer in OPTIMIZERS:
            try:
                rows.append(measured(name, optimizer))
            except Exception as error:
                refused[name] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
            print(name, optimizer, rows[-1] if name not in refused else refused[name], file=sys.stderr, flush=True)
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(text := "\n".join(report(rows, refused)) + "\n")
    print(text)
    return 0


def measured(name: str, optimizer: str) -> Row:
    """The second step of a family, after the optimizer has made its state."""
    model, stepper, loss, step = training(MODELS[name], optimizer)
    step()
    stepper.zero_grad()
    trace = nbkit.opcost().run(step)
    peak = int(trace.memory["allocated_bytes"].max())
    saved = int(nbkit.opcost().run(loss).saved["new_bytes"].sum())
    really_saved = saved_by(model, loss)
    held = held_by(model, stepper)
    by_record = held + allocated(step, trace.costs["op"])
    stepper.zero_grad()
    return Row(name, optimizer, peak, by_record, tracked(model, stepper, step), saved, really_saved)


def training(family: Family, optimizer: str) -> tuple[nn.Module, torch.optim.Optimizer, Loss, Callable[[], None]]:
    model, loss = family()
    stepper = OPTIMIZERS[optimizer](model.parameters())

    def step() -> None:
        stepper.zero_grad()
        loss().backward()
        stepper.step()

    return model, stepper, loss, step


def held_by(model: nn.Module, stepper: torch.optim.Optimizer) -> int:
    """Bytes of parameters, buffers and the optimizer's state."""
    state = [value for entry in stepper.state.values() for value in entry.values() if isinstance(value, Tensor)]
    storages = {tensor.untyped_storage() for tensor in (*model.parameters(), *model.buffers(), *state)}
    return sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())


def tracked(model: nn.Module, stepper: torch.optim.Optimizer, step: Callable[[], None]) -> int | None:
    """The peak that torch's MemTracker sees; None where it cannot follow the step, as with frozen parameters."""
    tracker = MemTracker()
    tracker.track_external(model, stepper)
    try:
        with tracker:
            step()
    except RuntimeError:
        return None
    (at_peak,) = tracker.get_tracker_snapshot("peak").values()
    return int(next(size for kind, size in at_peak.items() if str(kind) == "Total"))


def allocated(step: Callable[[], None], ops: Iterable[str]) -> int:
    """The most bytes that a step holds at once in tensors that it allocates, by the record of torch's profiler.

    `ops` are those that the step calls: what one of them allocates and frees again is its working memory.
    """
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        step()
    kernels = {"::".join(op.split(".")[:2]) for op in ops}
    events = sorted(allocations(recorded.profiler.kineto_results.experimental_event_tree(), kernels, 0))
    made: dict[int, int] = {}
    working: set[int] = set()
    for number, (_, size, address, kernel) in enumerate(events):
        if size > 0:
            made[address] = number
        elif (first := made.pop(address, None)) is not None and kernel and events[first][3] == kernel:
            working |= {first, number}
    return max(accumulate((size for number, (_, size, *_) in enumerate(events) if number not in working), initial=0))


def allocations(events: Iterable[Any], kernels: Set[str], kernel: int) -> Iterator[tuple[int, int, int, int]]:
    """Time, size, address and the kernel that runs then, as the time when it began, of each allocation and release."""
    for event in events:
        if event.tag.name == "Allocation":
            yield event.start_time_ns, event.extra_fields.alloc_size, event.extra_fields.ptr, kernel
        inside = kernel or (event.start_time_ns if event.name in kernels else 0)
        yield from allocations(event.children, kernels, inside)


def saved_by(model: nn.Module, forward: Callable[[], Tensor]) -> int:
    """Bytes of the memories that autograd saves, parameters and buffers left out."""
    own = {tensor.untyped_storage().data_ptr() for tensor in (*model.parameters(), *model.buffers())}
    held: dict[int, Any] = {}

    def pack(tensor: Tensor) -> Tensor:
        held.setdefault(tensor.untyped_storage().data_ptr(), tensor.untyped_storage())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        _ = forward()
    return sum(storage.nbytes() for pointer, storage in held.items() if pointer not in own)


def report(rows: list[Row], refused: dict[str, str]) -> Iterator[str]:
    errors = [abs(row.error) for row in rows]
    yield "# Memory that opcost predicts, and that of the step that runs"
    if rows:
        same = len({row.name for row in rows if row.saved == row.really_saved})
        yield f"\ntorch {torch.__version__}, {len({row.name for row in rows})} models, {len(rows)} training steps:"
        yield f"error of the peak: median {median(errors):.2%}, largest {max(errors):.2%}, within 1 % in"
        yield f"{sum(error <= 0.01 for error in errors)}; saved bytes equal to the byte in {same} models.\n"
    yield "| model | optimizer | peak predicted | measured | MemTracker | error | saved predicted | measured |"
    yield "|---|---|---|---|---|---|---|---|"
    for row in sorted(rows, key=lambda row: -abs(row.error)):
        peaks = f"{row.peak:,} | {row.allocated:,} | {f'{row.tracked:,}' if row.tracked else ''} | {row.error:+.2%}"
        numbers = f"{peaks} | {row.saved:,} | {row.really_saved:,}"
        yield f"| {row.name} | {row.optimizer} | {numbers} |"
    for name, message in refused.items():
        yield f"\n{name} does not run on shapes: {message}"


if __name__ == "__main__":
    sys.exit(main())
