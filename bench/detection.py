"""Asks how small an error opdiff finds: every call's results are off by k eps (|r| + root mean square of r).

Run from the repository root: `python bench/detection.py [--model NAME]`. Writes out/bench/detection.md. Each different
call (op, shapes, dtypes) of a training step of every model of bench/faults.py and of the models by hand of
bench/correct_models.py is judged as it is, which must not be wrong, and again with its floating-point results off by
so much, each element up or down by lot. Random ops are left out, and results that are no floating-point numbers, or
all zero. An error of the result is found above 8 if nothing but the rounding of the result is allowed; the more an op
adds up, and the worse its conditioning, the more it is allowed.
"""

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

import nbkit
from bench.families.by_hand import BY_HAND
from bench.harness.ratios import markdown
from bench.planted.steps import MODELS, make_step
from nbkit.capture.calls.capturer import CallCapturer
from nbkit.capture.diff import opdiff
from nbkit.capture.diff.judge import Judge
from nbkit.capture.diff.mode import DiffMode, role_of
from nbkit.capture.replay.op_traits import OpTraits, written_tensors
from nbkit.capture.replay.reference import Call, Results
from nbkit.numerics.noise_ratio import HARMLESS, THRESHOLD
from nbkit.numerics.tolerances import Tolerances

OUT = Path(__file__).parents[1] / "out" / "bench" / "detection.md"
SIZES = (2, 4, 8, 16, 32, 64)
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
# Families of ops by parts of their names, the first that fits; what is elementwise is found before them.
FAMILIES = {
    "attention": ("scaled_dot_product",),
    "recurrent": ("rnn", "lstm", "gru"),
    "convolution": ("convolution",),
    "norm": ("norm", "var", "std"),
    "loss": ("loss", "nll", "ctc"),
    "softmax": ("softmax", "logsumexp"),
    "product": ("mm", "dot", "mv", "linear", "cdist"),
    "running sum": ("cumsum", "cumprod"),
    "reduction": ("sum", "mean", "max", "min", "prod", "median", "pool"),
    "index": ("index", "gather", "scatter", "embedding", "select", "slice", "sort", "topk"),
    "optimizer": ("adam", "foreach"),
    "copy": ("copy", "clone", "cat", "stack", "pad", "fill", "zero", "one", "full", "where", "flip", "unfold"),
}
Verdict = dict[int, bool]  # by size, 0 for none: whether the call is called wrong


class Judged(NamedTuple):
    """Holds a call and what was said of it at every size of error."""

    op: str
    family: str
    dtype: str
    wrong: Verdict


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", action="append", help="only this one; may be given several times")
    options = parser.parse_args()
    torch.set_num_threads(1)
    judged = [one for name, step in steps() if name in (options.model or [name]) for one in judged_calls(step)]
    text = report(judged)
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(text)
    print(text)
    raise SystemExit(any(one.wrong[0] for one in judged))


def steps() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yields models and what makes and runs a step of each, in either dtype."""
    for name in MODELS:
        for dtype in DTYPES:
            yield name, make_step(name, dtype, "cpu").run
    for name, family in BY_HAND.items():
        for wanted in DTYPES.values():
            model, loss = family()
            model.to(wanted)
            try:
                loss().backward()
            except (RuntimeError, NotImplementedError):  # torch has no kernel
                continue
            yield name, lambda loss=loss: loss().backward()


def judged_calls(step: Callable[[], Any]) -> list[Judged]:
    """Returns what opdiff makes of each different call of a step."""
    with detecting() as found, nbkit.opdiff(keep=0) as trace:
        step()
    calls = list(found.values())
    wrong = trace.diffs[~trace.diffs["status"].isin(HARMLESS)]
    return [*calls, *(Judged(op, "false alarm", dtype, dict.fromkeys((0, *SIZES), True))
                      for op, dtype in zip(wrong["op"], wrong["dtype"], strict=True))]  # fmt: skip


@contextmanager
def detecting() -> Iterator[dict[Any, Judged]]:
    """Lets opdiff judge every different call again with wrong results; gives what it said of them."""
    found: dict[Any, Judged] = {}
    compare = DiffMode._compare

    def compare_twice(self: DiffMode, traits: OpTraits, call: Call, out: Any, arguments: tuple[Any, Any]) -> None:
        compare(self, traits, call, out, arguments)
        actual = Results(out, written_tensors(traits, *arguments), traits.values)
        real = [tensor for tensor in actual.all if tensor.is_floating_point() and bool(tensor.any())]
        names = [str(one.dtype).removeprefix("torch.") for one in real]
        key = traits.name, *((tuple(one.shape), one.dtype) for one in (*call.tensors(), *actual.all))
        if not traits.is_random and len(set(names)) == 1 and names[0] in DTYPES and key not in found:
            wrong = {size: is_wrong(self, call, actual, arguments, size) for size in SIZES}
            found[key] = Judged(traits.name, family_of(traits), names[0], {0: False, **wrong})

    opdiff.DiffMode._compare = compare_twice  # type: ignore[method-assign]
    try:
        yield found
    finally:
        opdiff.DiffMode._compare = compare  # type: ignore[method-assign]


def is_wrong(mode: DiffMode, call: Call, actual: Results, arguments: tuple[Any, Any], size: int) -> bool:
    """Returns whether a call with such an error would be called wrong."""
    expected = call.results(arguments)
    judge = Judge(Tolerances(None), THRESHOLD, CallCapturer(0, 0, None))
    generator = torch.Generator().manual_seed(size)
    for index, tensor in enumerate(actual.all):
        role, position = role_of(actual, index, arguments)
        row = judge.add_row(0, call.traits, role, position, tensor)
        judge.compare(row, off_by(tensor, size, generator), call, expected, index, arguments)
    judge.finish()
    return any(row["status"] not in HARMLESS for row in judge.rows)


def off_by(tensor: Tensor, size: int, generator: torch.Generator) -> Tensor:
    """Returns a tensor of which each element is off by size eps (|element| + root mean square)."""
    if not tensor.is_floating_point() or not tensor.numel():
        return tensor
    wide = tensor.double()
    finite = torch.where(wide.isfinite(), wide, 0.0)
    signs = torch.randint(0, 2, wide.shape, generator=generator) * 2 - 1
    error = size * torch.finfo(tensor.dtype).eps * (finite.abs() + finite.square().mean().sqrt())
    return (wide + signs * error).to(tensor.dtype)


def family_of(traits: OpTraits) -> str:
    """Returns the family of an op."""
    for family, parts in FAMILIES.items():
        if any(part in traits.packet for part in parts):
            return family
    return "elementwise" if traits.is_pointwise else "other"


def report(judged: list[Judged]) -> str:
    """Returns the shares of calls that are called wrong, in all and by family, in Markdown."""
    parts = ["# How small an error opdiff finds", f"torch {torch.__version__}; an error is k eps (|r| + rms of r)."]
    for dtype in DTYPES:
        ones = [one for one in judged if one.dtype == dtype and not one.wrong[0]]
        alarms = sum(one.dtype == dtype and one.wrong[0] for one in judged)
        groups = defaultdict(list)
        for one in ones:
            groups[one.family].append(one)
        rows = [row_of(name, group) for name, group in [("all", ones), *sorted(groups.items())] if group]
        head = (f"{dtype}, k =", "calls", *map(str, SIZES))
        parts += [markdown(head, rows), f"Mismatches without an error: {alarms}."]
    return "\n\n".join(parts) + "\n"


def row_of(name: str, group: list[Judged]) -> tuple[str, ...]:
    shares = [sum(one.wrong[size] for one in group) / len(group) for size in SIZES]
    return name, str(len(group)), *(f"{share:.0%}" for share in shares)


if __name__ == "__main__":
    main()
