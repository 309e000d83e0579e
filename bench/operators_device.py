"""Runs the operator tools on an accelerator: do they do there what they promise, and what does it cost?

Small training steps of nine models. opfallback: is a step on the device whose ops all run on the CPU the step of the
CPU to the bit; what stays on the device, by reason. opstable: how many calls differ from run to run, in another batch
or with other strides, and how many of those that differ from run to run torch documents; the time beside opdiff.
opcast: does a dry run leave the bits of a bare step. opbisect: an op whose kernel is right on the CPU alone, among
right ones. `bench/replay.py --device` has opcapture and opreplay.

Run from the repository root: `python bench/operators_device.py [--device cuda]`. Writes out/bench/operators_device.md.
Ends with status 1 where a step with nothing left on the device is another, a dry run changes a step, or opbisect names
another op. Without an accelerator the device is the simulated one, which shows that the script runs.
"""

import argparse
import copy
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

import nbkit
from bench.devices import chosen, named, wait
from bench.harness.ratios import markdown, number
from bench.planted.steps import MODELS, Step, make_step

OUT = Path(__file__).parents[1] / "out" / "bench" / "operators_device.md"
SPLIT_BY_DEVICE = ("recurrent",)  # torch runs an LSTM by other ops on each device
# What computes nothing, or returns no tensor that could differ.
HARMLESS_TO_LEAVE = ("views", "uninitialized memory", "API calls", "metadata ops", "ops that return no tensor")
CHECKS = ("run_to_run", "batch_invariant", "stride_invariant")
FALLBACK_HEAD = ("model", "calls on the CPU", "bits of the CPU", "largest relative difference", "left on the device")
STABLE_HEAD = ("model", "calls", *CHECKS, "run_to_run, documented", "opdiff s", "opstable s")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="such as cuda; the accelerator that torch finds if not given")
    device = chosen(parser.parse_args().device)
    torch.set_num_threads(1)
    parts, is_right = ["# The operator tools on a device", f"{named(device)}, torch {torch.__version__}."], True
    for section in (fallback, stable, cast, bisect):
        text, was_right = section(device)
        print(f"{section.__name__}: {'right' if was_right else 'WRONG'}", file=sys.stderr, flush=True)
        parts.append(text)
        is_right = is_right and was_right
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(text := "\n\n".join(parts) + "\n")
    print(text)
    return int(not is_right)


def made(name: str, device: torch.device | str) -> Step:
    """Returns a step whose next run draws the same random numbers, on devices without a generator of their own."""
    step = make_step(name, "float32", device)
    torch.manual_seed(1)
    return step


def bits(step: Step) -> list[Tensor]:
    """Returns copies of gradients and parameters on the CPU."""
    held = [one for p in step.model.parameters() for one in (p.grad, p) if one is not None]
    return [one.detach().cpu().clone() for one in held]


def fallback(device: torch.device) -> tuple[str, bool]:
    rows, is_right = [], True
    for name in MODELS:
        step, on_cpu = made(name, device), made(name, "cpu")
        step.model.load_state_dict(on_cpu.model.state_dict())
        step.optimizer.load_state_dict(copy.deepcopy(on_cpu.optimizer.state_dict()))
        # Else torch chooses fused attention by device: one kernel here, another or its parts there.
        with sdpa_kernel(SDPBackend.MATH):
            on_cpu.run()
            torch.manual_seed(1)
            with nbkit.opfallback() as trace:
                step.run()
        pairs = [*zip(bits(step), bits(on_cpu), strict=True)]
        same = all(torch.equal(actual, expected) for actual, expected in pairs)
        worst = max(float((a - e).abs().max() / e.abs().max().clamp_min(1e-30)) for a, e in pairs)
        left = {
            reason.removeprefix("not replaced: "): count
            for reason, count in trace.meta["skipped"].items()
            if not reason.removeprefix("not replaced: ").startswith(HARMLESS_TO_LEAVE)
        }
        is_right = is_right and (same or bool(left) or name in SPLIT_BY_DEVICE)
        shown = "; ".join(f"{count} x {reason}" for reason, count in left.items()) or "nothing"
        rows.append((name, str(len(trace.replaced)), "yes" if same else "NO", number(worst), shown))
    return markdown(FALLBACK_HEAD, rows), is_right


def timed(run: Callable[[], Any], recorder: Any, device: torch.device) -> float:
    start = perf_counter()
    with recorder:
        run()
    wait(device)
    return perf_counter() - start


def stable(device: torch.device) -> tuple[str, bool]:
    """The verdicts and times of opstable; whether they are right is not known from elsewhere."""
    rows, differing = [], Counter[tuple[str, str]]()
    for name in MODELS:
        step = made(name, device)
        timed(step.run, nbkit.opdiff(), device), timed(step.run, nbkit.opstable(), device)  # kernels that load late
        took, recorder = timed(step.run, nbkit.opdiff(), device), nbkit.opstable()
        stable_took = timed(step.run, recorder, device)
        frame = recorder.trace.stability
        differs = [frame[check] == "differs" for check in CHECKS]
        documented = frame["message"].str.contains("documents it as nondeterministic", na=False)
        rows.append((
            name, str(len(frame)), *(str(int(one.sum())) for one in differs), str(int((differs[0] & documented).sum())),
            f"{took:.2f}", f"{stable_took:.2f}",
        ))  # fmt: skip
        for check, one in zip(CHECKS, differs, strict=True):
            differing.update((check, op) for op in frame.loc[one, "op"])
    listed = [f"- {check}: {count} x {op}" for (check, op), count in sorted(differing.items())]
    return "\n\n".join([markdown(STABLE_HEAD, rows), *(["\n".join(listed)] if listed else [])]), True


def cast(device: torch.device) -> tuple[str, bool]:
    rows, is_right = [], True
    for name in MODELS:
        left = []
        for recorder in (nullcontext(), nullcontext(), nbkit.opcast(torch.bfloat16, dry_run=True)):
            step = made(name, device)
            with recorder as trace:
                step.run()
            left.append(bits(step))
        again, dry = (all(map(torch.equal, left[0], other)) for other in left[1:])
        is_right = is_right and (dry or not again)
        casts = trace.casts  # of the last, the dry run
        worst = casts.loc[casts["error"].idxmax(), "op"] if casts["error"].notna().any() else ""
        rows.append((name, "same" if again else "other", "same" if dry else "OTHER", str(len(casts)), worst))
    head = ("model", "bits of a second bare step", "of a dry run", "calls cast", "largest error in bfloat16")
    return markdown(head, rows), is_right


@torch.library.custom_op("nbkit_bench::curve", mutates_args=())
def curve(x: Tensor) -> Tensor:
    """Tanh on the CPU; a steeper one on any other device."""
    return x.tanh() if x.device.type == "cpu" else (1.3 * x).tanh()


curve.register_autograd(
    lambda ctx, grad: grad * (1 - ctx.saved_tensors[0].square()),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(output),
)


class Curved(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = curve(x)
        return out


def bisect(device: torch.device) -> tuple[str, bool]:
    def step_on(place: torch.device | str) -> tuple[nn.Module, Callable[[], Tensor]]:
        torch.manual_seed(0)
        blocks = [nn.Sequential(nn.Linear(32, 32), nn.GELU(), nn.LayerNorm(32)) for _ in range(6)]
        model = nn.Sequential(*blocks[:3], Curved(), *blocks[3:], nn.Linear(32, 1)).to(place)
        x = torch.randn(16, 32).to(place)

        def step() -> Tensor:
            model.zero_grad()
            (loss := model(x).square().mean()).backward()
            return loss.detach().cpu()

        return model, step

    expected = step_on("cpu")[1]()
    if torch.device(device).type == "sim":  # which runs any op as the CPU does, but for faults
        device = nbkit.SimulatedDevice([nbkit.Fault("nbkit_bench.curve", "relative_error", size=0.3)]).torch_device
    model, step = step_on(device)
    start = perf_counter()
    trace = nbkit.opbisect(step, lambda loss: torch.allclose(loss, expected, rtol=1e-4), state=model)
    found = [(one["op"], one["module"]) for one in trace.meta["culprits"]]
    text = (
        f"opbisect, an op with a wrong kernel among {len(trace.ops)} calls: {found} after {len(trace.trials)} trials "
        f"in {perf_counter() - start:.1f} s. {trace.meta['verdict']}"
    )
    return text, found == [("nbkit_bench.curve.default", "3")]


if __name__ == "__main__":
    sys.exit(main())
