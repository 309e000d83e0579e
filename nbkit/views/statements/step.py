"""Words the time of a step, its peak of memory and its FLOPs, as opdoctor measures them."""

from collections.abc import Iterator
from typing import Any

from nbkit import units
from nbkit.schema import OPS
from nbkit.trace.trace import Trace
from nbkit.views.statements.statement import Words
from nbkit.views.statements.time import without_recording
from nbkit.views.summary.names import ROOT, shown


def step_words(trace: Trace) -> list[Words]:
    """Returns the sentences of a brief; none for what has not measured a whole step."""
    step = trace.meta.get("step")
    if step and not (trace.frames.get("ops", OPS.frame())["level"] == "aten").any():
        return [("No op of torch ran in the step's thread, so there was nothing to look at.",)]
    return [*_time(step), *_memory(step)] if step else []


def _time(step: dict[str, Any]) -> Iterator[Words]:
    """Yields the time of the step; of one that was timed by itself what its phases, ops and modules take, too."""
    if "time_us" not in step:
        return
    time, runs = units.duration(step["time_us"]), step["runs"]
    if step.get("is_script"):
        yield (f"At most {time} for the whole script: recording slows it; with --step, steps are timed by themselves.",)
        return
    if not runs:
        yield (f"At most {time} per step: recording slows it; repeats are timed by themselves.",)
        return
    spread = f"median of {units.counted(runs, 'run')}, IQR {units.duration(step['iqr_us'])}" if runs > 1 else "one run"
    spread += without_recording(step.get("bare_us"), step["time_us"])
    whole = sum(step["phases"].values()) or 1.0
    phases = [f"{name} {100 * time_us / whole:.0f} %" for name, time_us in step["phases"].items()]
    slowest = [
        f"slowest {noun} {shown(name.removesuffix('.default')) or ROOT} ({100 * time_us / whole:.0f} %)"
        for noun in ("op", "module")
        for *_, name, time_us in step[f"slowest_{noun}s"][:1]
    ]
    yield (f"{time} per step ({spread}): {', '.join(phases)}{'; ' if slowest else ''}{', '.join(slowest)}.",)


def _memory(step: dict[str, Any]) -> Iterator[Words]:
    """Yields the peak of memory, what of it was there before, and the FLOPs, as far as they are known."""
    if step.get("peak_bytes") is not None:
        held = step.get("held_bytes")
        before = f", of which {units.data_size(held)} that it read was there before" if held else ""
        device = f" of {step['peak_device']}" if step.get("peak_device") else ""
        at_least = " at least" if step.get("peak_is_least") else ""
        yield (f"Peak memory{device}{at_least} {units.data_size(step['peak_bytes'])}{before}.",)
    if step.get("flops"):
        least = "at least " if step.get("uncounted_calls") else ""
        yield (f"Its products and convolutions compute {least}{units.flops(float(step['flops']))}.",)
