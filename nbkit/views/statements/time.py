"""Says in words where the time of a step went, what it waited for, and what opdoctor measures: time, memory, FLOPs."""

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from nbkit import units
from nbkit.analysis.time.times import by_kernel, computing_ops, host_ops, self_by_phase, slowest_groups
from nbkit.findings.causes import causes_in
from nbkit.schema import COLLECTIVES, OPS, TIMINGS
from nbkit.timeline.median_times import MOST_DELAYS
from nbkit.trace.trace import Trace
from nbkit.views.sections.section import MODULE, module_names
from nbkit.views.statements.peaks import peak_words
from nbkit.views.statements.statement import Chip, Statement, Words, op_link
from nbkit.views.summary.counting import recorded_too
from nbkit.views.summary.names import ROOT, shown

TIMING = "optime"
RECORDINGS = ("optrace", TIMING)
# A phase of less is not named.
LEAST_SHARE = 0.005
# A step that takes less of this without a recording is slowed by it, as one of many short ops is.
LEAST_BARE = 0.85
# A step of so long, of which so much lies between two events, is none.
LONG_US, MOST_APART = 1e9, 0.99


def time_statements(trace: Trace) -> list[Statement] | None:
    """Says where the time of a timed step goes; null for what has not measured one."""
    # The step itself is always a row.
    is_timed = trace.meta.get("verb") == TIMING and len(trace.frames.get("ops", ())) > 1
    if not is_timed and "step" not in trace.meta and TIMING not in recorded_too(trace):
        return None
    peaks = peak_words(trace, "Peak of memory: ") if is_timed else ()
    return [Statement("", (*([_where_it_goes(trace)] if is_timed else []), *step_words(trace), *peaks))]


def _where_it_goes(trace: Trace) -> Words:
    """Returns the sentence that answers where the time of a timed step goes."""
    ops = trace.ops
    whole_us = float(host_ops(ops)["self_time_us"].sum()) or 1.0
    phases = self_by_phase(ops)
    shares = zip(phases["phase"], phases["self_time_us"] / whole_us, strict=True)
    named = [f"{shown(str(phase))} {100 * share:.0f} %" for phase, share in shares if share >= LEAST_SHARE]
    kinds = slowest_groups(computing_ops(ops), ["op"], 1)
    modules = slowest_groups(ops.dropna(subset="module").reset_index(drop=True), MODULE, 1)
    parts = [
        *_slowest("op", [shown(str(name)).removesuffix(".default") for name in kinds["op"]], kinds, whole_us),
        *_slowest("module", module_names(modules), modules, whole_us),
        *_slowest_kernel(ops),
    ]
    joined = [word for number, part in enumerate(parts) for word in (", " if number else "; ", *part)]
    return (f"{_step_time(trace, whole_us)}: {', '.join(named)}", *joined, ".")


def _step_time(trace: Trace, whole_us: float) -> str:
    """Writes the time of a step, and what its calls take by their medians where delays in changing places are much."""
    timings = TIMINGS.check(trace.frames.get("timings", TIMINGS.frame()))
    if not len(timings):
        ops = host_ops(trace.ops)
        whole_us = float((ops["start_us"] + ops["total_time_us"]).max() - ops["start_us"].min())
        return f"{units.duration(whole_us)} per step (one run{_apart(ops, whole_us)})"
    step = timings.iloc[0]
    parts = [f"median of {units.counted(int(step['repeats']), 'run')}", f"IQR {units.duration(step['iqr_us'])}"]
    parts[-1] += without_recording(trace.meta.get("bare_us"), float(step["median_us"]))
    if whole_us < (1 - MOST_DELAYS) * step["median_us"]:
        parts.append(f"{units.duration(whole_us)} by the medians of its calls")
    return f"{units.duration(step['median_us'])} per step ({', '.join(parts)})"


def _apart(ops: pd.DataFrame, whole_us: float) -> str:
    """Says where nearly all of a long time lies between two events, of which one has no true time."""
    rows = ops.sort_values("start_us")
    ends = (rows["start_us"] + rows["total_time_us"]).cummax()
    gap_us = float((rows["start_us"] - ends.shift()).max()) if whole_us >= LONG_US else 0.0
    if not gap_us >= MOST_APART * whole_us:
        return ""
    return f"; {units.duration(gap_us)} of it lie between two events: their clocks differ, or one has no time"


def without_recording(bare_us: float | None, step_us: float) -> str:
    """Writes the time of a step that nothing recorded, where recording adds much to it."""
    return f", {units.duration(bare_us)} without the recording" if bare_us and bare_us < LEAST_BARE * step_us else ""


def _slowest(noun: str, names: Sequence[str], groups: pd.DataFrame, whole_us: float) -> list[Words]:
    """Names the slowest group, with a link to its slowest call; nothing where there is none."""
    rows = zip(names, groups["op_id"], groups["self_time_us"], strict=True)
    return [
        (f"slowest {noun} ", op_link(name, int(op_id)), f" ({100 * time_us / whole_us:.0f} %)")
        for name, op_id, time_us in rows
    ]


def _whose(device: object) -> str:
    return f"{device}'s" if isinstance(device, str) else "an unknown device's"


def _slowest_kernel(ops: pd.DataFrame) -> list[Words]:
    rows = by_kernel(ops).head(1)[["op", "device", "device_fraction"]].itertuples(index=False)
    return [
        (f"slowest kernel {shown(str(op))} ({100 * share:.0f} % of {_whose(device)} time)",)
        for op, device, share in rows
    ]


def step_words(trace: Trace) -> list[Words]:
    """Returns the sentences on a step that was measured as a whole; none for what has not measured one."""
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


def waiting_statements(trace: Trace) -> list[Statement] | None:
    """Says what the process of a recorded or timed step asked of the others; null for others, and without a call."""
    if trace.meta.get("verb") not in RECORDINGS:
        return None
    calls = COLLECTIVES.check(trace.frames["collectives"])
    if not len(calls) or calls["rank"].nunique() > 1:
        return None
    return [Statement("", ((_asked(calls), *_waited(calls, trace.meta.get("wall_us")), "."),))]


def _asked(calls: pd.DataFrame) -> str:
    """Writes how many calls there are in how many groups, and the bytes that they take from this process."""
    sent = int(calls["is_p2p"].sum())
    counts = [(len(calls) - sent, "collective"), (sent, "point-to-point transfer")]
    named = " and ".join(units.counted(count, noun) for count, noun in counts if count)
    groups = len(calls[["group", "group_ranks"]].dropna(how="all").drop_duplicates())
    size = calls["size_bytes"]
    # A barrier moves nothing.
    least = "at least " if (size.isna() & calls["op"].ne("barrier")).any() else ""
    moved = f" moved {least}{units.data_size(float(size.sum()))}" if size.notna().any() else ""
    of = f" of {units.counted(groups, 'group')}" if groups else ""
    return f"{named}{of}{moved or ' ran'}"


def _waited(calls: pd.DataFrame, wall_us: float | None) -> Words:
    """Writes how long the step waited for them, and for which the longest."""
    waits = calls["wait_us"]
    if waits.isna().all():
        return ("; how long the step waited for them is not known",)
    least = "at least " if waits.isna().any() else ""
    of = f" of {units.duration(wall_us)}" if wall_us else ""
    told = f"; the step waited {least}{units.duration(float(waits.sum()))}{of} for them"
    longest = calls.iloc[int(waits.fillna(-1.0).argmax())]
    if pd.isna(longest["op_id"]) or waits.notna().sum() < 2:
        return (told,)
    where = "" if pd.isna(longest["module"]) else f" in {shown(str(longest['module'])) or ROOT}"
    name = f"{shown(str(longest['op']))}{where}"
    return (f"{told}, {units.duration(float(longest['wait_us']))} of it for ", op_link(name, int(longest["op_id"])))


def time_chips(trace: Trace) -> Iterator[Chip]:
    """Yields how many hints there are at what to save."""
    if trace.meta.get("verb") == TIMING and (hints := len(causes_in(trace))):
        yield Chip(f"{units.counted(hints, 'hint')} at time or memory to save", "")
