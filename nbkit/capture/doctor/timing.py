"""Times a step while others look at its values: adds hints of time, memory events, and the step's time and peak."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
import torch

from nbkit import units
from nbkit.capture.profiler.kineto import KinetoOptions, event_overhead_us
from nbkit.capture.profiler.kineto_recording import KinetoRecording
from nbkit.capture.raw.recording import Recording
from nbkit.capture.recorder.observer import Frames, Meta, Observer
from nbkit.capture.settings import slow_settings
from nbkit.capture.step.module_calls import ModuleCalls
from nbkit.capture.subnormals import subnormal_state
from nbkit.findings.finding import with_findings
from nbkit.findings.time.rules import time_findings
from nbkit.ops.flops import call_flops, formulas, rule_of
from nbkit.schema import FINDINGS, TIMINGS
from nbkit.schema.findings import MOST_OPS
from nbkit.step.decode import arguments_of, inputs_in
from nbkit.timeline.median_times import at_median_times, gaps_us, moved
from nbkit.trace.trace import Trace

PHASES = ("forward", "backward", "optimizer", "other")
TAKEN = "Time and memory were not judged: another profiler began in the step and took the events."
MEMORY_TAKEN = "Memory was not judged: another profiler began in the step and took the events."
NOT_AGAIN = "Time and memory were not judged: no step was timed."
OTHERS = "{calls} have no time of their own in the timed runs, and share what is left of the step's."
MOST_MODULES = 6  # a report draws as many
PLACE = ["op", "source", "module", "phase"]


class TimeObserver(Observer):
    """Keeps torch.profiler's engine on around a recording, and takes nbkit's own work out of what it saw.

    What recording a row costs is left in the times of ops; the step's time is without its lower bound. `findings`
    are what takes time in this run, of its own ops; `is_taken` says whether another profiler took the events.
    """

    def __init__(self, device: str | None) -> None:
        self.findings, self.is_taken = FINDINGS.frame(), False
        self.options = KinetoOptions(memory=True, shapes=False, device=device)

    @contextmanager
    def below(self, recording: Recording, modules: ModuleCalls) -> Iterator[None]:
        self.recording = recording
        self.kineto = KinetoRecording(self.options, stacks=False)
        try:
            yield
        finally:
            self.kineto.stop()

    def frames(self, trace: Trace, ops: pd.DataFrame, op_ids: np.ndarray) -> tuple[Frames, Meta]:
        self.spans = self.recording.spent.array()
        self.run = self.kineto.read(self.spans)
        memory = self.run.frames["memory"]
        # Ops are numbered otherwise here.
        return {"memory": memory.assign(op_id=pd.Series(pd.NA, memory.index, "Int64"))}, {"notes": self.run.notes}

    def completed(self, frames: Frames, meta: Meta) -> tuple[Frames, Meta]:
        timed = self.run.frames["ops"]
        rows_us = meta["recorder_us"] - float((self.spans[:, 1] - self.spans[:, 0]).sum()) / 1e3
        # Within the profiler's own time hooks are installed and removed.
        wall_us = min(self.run.wall_us, meta["wall_us"] - self._own_us())
        time_us = wall_us - rows_us - len(timed) * event_overhead_us(self.options)
        step = {"time_us": max(time_us, 0.0), "runs": 0, **memory_of(frames), **flops_of(frames)}
        forwards, settings = self.run.forwards, slow_settings()
        self.findings = time_findings(
            self.run.frames, is_slowed=True, forwards=forwards, look=subnormal_state, settings=settings
        )
        self.is_taken = not len(timed)
        return frames, {**meta, "step": step}

    def _own_us(self) -> float:
        """Returns what nbkit's own work takes of the recording's time."""
        inside = self.spans.clip(self.recording.start, self.recording.end)
        return float((inside[:, 1] - inside[:, 0]).sum()) / 1e3

    def forget(self) -> None:
        del self.recording, self.kineto, self.run, self.spans


def memory_of(frames: Frames) -> dict[str, Any]:
    """Returns the bytes that a step holds at its peak, and of them those of what it found there and read.

    `peak_is_least`: memory that was there before was freed without being read, so that the peak is a lower bound.
    A device with an allocator of its own counts what is there itself; with several devices, `peak_device` names the one
    of the highest peak. Null where nothing was allocated, and where what is there is not known.
    """
    memory, tensors = frames["memory"], frames["tensors"]
    peaks = memory.groupby("device", sort=False)["allocated_bytes"].max().dropna()
    if not len(peaks):
        return {"peak_bytes": None, "held_bytes": None, "peak_device": None}
    others = peaks.drop("cpu", errors="ignore")
    if len(others):
        peak, device = int(others.max()), str(others.idxmax()) if len(peaks) > 1 else None
        # Less than nothing is what is freed of memory that was there before.
        return {"peak_bytes": peak if peak >= 0 else None, "held_bytes": None, "peak_device": device}
    first = tensors.drop_duplicates("storage_id")
    # The tensor that torch.tensor() makes of plain values is in `memory`, and lift_fresh is the first op that reads it.
    ops = frames["ops"]
    is_maker = ops["op"].isin(["torch.tensor", "torch.Tensor.new_tensor"])
    is_lift = (ops["op"] == "aten.lift_fresh.default") & ops["parent_id"].isin(ops.loc[is_maker, "op_id"])
    is_made = first["op_id"].isin(ops.loc[is_lift, "op_id"])
    # A hook, such as that of a checkpoint, may read what an op makes before the op has ended.
    place = pd.MultiIndex.from_frame(tensors[["op_id", "storage_id"]])
    is_output = tensors["role"] == "output"
    made = tensors.loc[is_output & ~place.isin(place[~is_output]), "storage_id"]
    before = first.loc[(first["role"] == "input") & ~is_made & ~first["storage_id"].isin(made), "storage_id"]
    rows = tensors[tensors["storage_id"].isin(before) & (tensors["device"] == "cpu")]
    held = int(rows.groupby("storage_id")["size_bytes"].max().sum())
    is_least = bool((memory.loc[memory["device"] == "cpu", "allocated_bytes"] < 0).any())
    peak = max(int(peaks["cpu"]), 0) + held
    return {"peak_bytes": peak, "held_bytes": held, "peak_device": None, "peak_is_least": is_least}


def flops_of(frames: Frames) -> dict[str, int]:
    """Returns the FLOPs of recorded products and convolutions, and how many such calls nobody could count.

    A call that raised has no result and computed nothing: so a checkpoint ends what it computes again.
    """
    known, ops, tensors = formulas(), frames["ops"], frames["tensors"]
    has_result = ops["op_id"].isin(tensors.loc[tensors["role"] == "output", "op_id"])
    kinds = ops.loc[has_result & (ops["level"] == "aten"), ["op", "input_shapes", "arguments"]]
    counted = {"flops": 0, "uncounted_calls": 0}
    for row in kinds.value_counts(dropna=False, sort=False).reset_index(name="calls").to_dict("records"):
        op, calls = str(row["op"]), int(row["calls"])
        formula = known.get(op.rpartition(".")[0])
        if formula is None:
            counted["uncounted_calls"] += calls * (rule_of(_overload(op)) is None)
            continue
        shapes = inputs_in(row["input_shapes"])
        flops = None if shapes is None else call_flops(formula, shapes, _values(op, row["arguments"]))
        counted["uncounted_calls" if flops is None else "flops"] += calls * (1 if flops is None else flops)
    return counted


def _values(op: str, arguments: object) -> list[Any]:
    """Returns the arguments of a call in their order, null for tensors."""
    named = arguments_of(arguments)
    return [named.get(argument.name) for argument in _overload(op)._schema.arguments]


def _overload(op: str) -> Any:
    namespace, name, overload = op.split(".")
    return getattr(getattr(getattr(torch.ops, namespace), name), overload)


def times_of(timed: Trace) -> dict[str, Any]:
    """Returns the time of a step, in the middle of how many runs, and in these what phases, ops and modules take."""
    ops = timed.ops
    if not len(ops):
        return {}
    host, phases = _host(ops), _phases(ops)
    shares = {
        "phases": {phase: float(phases[phase]) for phase in PHASES if phases.get(phase)},
        "slowest_ops": _most(host[host["level"] == "aten"], ["op"], 1),
        "slowest_modules": _most(host.dropna(subset="module"), ["model", "module"], MOST_MODULES),
    }
    if "timings" not in timed.frames:
        return {"time_us": float(ops["total_time_us"].iloc[0]), "runs": 1, **shares}
    whole = timed.timings.iloc[0]
    spread = {"iqr_us": float(whole["iqr_us"]), "runs": int(whole["repeats"])}
    return {"time_us": float(whole["median_us"]), **spread, **shares}


def _host(ops: pd.DataFrame) -> pd.DataFrame:
    return ops[ops["level"] != "kernel"]  # kernels run at the same time, in a device's


def _phases(ops: pd.DataFrame) -> pd.Series:
    host = _host(ops)
    return host["self_time_us"].groupby(host["phase"], sort=False).sum()


def _most(ops: pd.DataFrame, names: list[str], count: int) -> list[list[Any]]:
    """Returns the names of the groups of calls that take most by themselves, and their times."""
    sums = ops.groupby(names, sort=False)["self_time_us"].sum().sort_values(ascending=False, kind="stable")
    most: list[list[Any]] = sums.head(count).reset_index().to_numpy().tolist()
    return most


def with_times(frames: Frames, timed: Trace) -> tuple[Frames, list[str]]:
    """Returns the frames with the median times of calls in timed runs, and `timings`; all else is of the first run.

    The n-th call of an op is its n-th there. What has no time there shares what is left of the step's by its own times,
    which notes, the second of what comes back, say.
    """
    ops, timings = frames["ops"], timed.frames.get("timings", TIMINGS.frame())
    if not len(timings):
        whole = timed.ops["total_time_us"]
        of_one = {"op_id": timed.ops["op_id"], "median_us": whole, "min_us": whole}
        timings = TIMINGS.frame({**of_one, "repeats": np.ones(len(whole), np.int64), "iqr_us": np.zeros(len(whole))})
    both = _calls(ops).merge(_calls(timed.ops), on=["op", "calls", "nth"], suffixes=("", "_timed"))
    known = both[["op_id", "op_id_timed"]].merge(timings.rename(columns={"op_id": "op_id_timed"}), on="op_id_timed")
    known = TIMINGS.frame(dict(known.sort_values("op_id")[TIMINGS.names]))
    medians, others, between = _medians(ops, known, _phases(timed.ops))
    made = at_median_times(ops, medians, between)
    time_us = moved(frames["memory"]["time_us"].to_numpy(np.float64), ops, made)
    frames = {**frames, "ops": made, "timings": known, "memory": frames["memory"].assign(time_us=time_us)}
    return frames, [OTHERS.format(calls=units.counted(others, "call"))] if others else []


def _medians(ops: pd.DataFrame, known: pd.DataFrame, phases: pd.Series) -> tuple[pd.DataFrame, int, np.ndarray]:
    """Returns times of ops that, with what is between them, add up in each phase to at most that of timed runs.

    Then how many are of no timed call, and the factor by which the time before each call shrinks.
    """
    medians = ops[["total_time_us", "self_time_us", "self_device_time_us"]].copy()
    rows = known["op_id"].to_numpy()
    rows = rows[~np.isin(rows, ops["parent_id"].dropna().to_numpy(np.int64))]
    medians.loc[rows, ["total_time_us", "self_time_us"]] = known.set_index("op_id")["median_us"].loc[rows]
    is_timed = ops["op_id"].isin(rows)
    is_other = ~is_timed & (ops["level"] != "kernel")
    sums = medians["self_time_us"].groupby([ops["phase"], is_timed]).sum().unstack(fill_value=0)
    others_us = sums.get(False, 0.0) + pd.Series(gaps_us(ops)).groupby(ops["phase"]).sum()
    rest_us = (phases.reindex(others_us.index, fill_value=0.0) - sums.get(True, 0.0)).clip(lower=0.0)
    factor = (rest_us / others_us.where(others_us > 0)).clip(upper=1.0).fillna(1.0)
    between = ops["phase"].map(factor).to_numpy(np.float64)
    medians.loc[is_other, "self_time_us"] *= between[is_other]
    return medians, int(is_other.sum()), between


def _calls(ops: pd.DataFrame) -> pd.DataFrame:
    """Returns of each aten op how often it was called, and which of these calls it is, in the order they began."""
    aten = ops.loc[ops["level"] == "aten", ["op_id", "op", "start_us"]].sort_values("start_us", kind="stable")
    groups = aten.groupby("op", sort=False)
    return aten.assign(calls=groups["op"].transform("size"), nth=groups.cumcount())


def with_time_findings(frames: Frames, findings: pd.DataFrame) -> Frames:
    """Returns the frames with findings about a timing of the same step, each placed at the ops that it is about."""
    ops = frames["ops"]
    known = {key: list(rows) for key, rows in ops.groupby(PLACE, dropna=False, sort=False).indices.items()}
    rows = [known.get(key, []) for key in findings[PLACE].itertuples(index=False, name=None)]
    evidence = [
        json.dumps({**json.loads(text), "op_ids": [*map(int, found[:MOST_OPS])]})
        for text, found in zip(findings["evidence"], rows, strict=True)
    ]
    op_ids = pd.array([int(ops["op_id"].iloc[found[0]]) if found else pd.NA for found in rows], dtype="Int64")
    return with_findings(frames, FINDINGS.frame({**findings, "op_id": op_ids, "evidence": evidence}))
