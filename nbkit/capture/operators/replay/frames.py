"""Builds the frames of a replay: ops, timings, diffs, replayed."""

import json
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from nbkit.capture.calls.encode import NAMED
from nbkit.capture.calls.rebuilding import BuiltCall
from nbkit.capture.calls.taking import needs_no_values
from nbkit.capture.diff.frame import diffs_frame
from nbkit.capture.diff.pair import Row
from nbkit.capture.operators.replay.run import Ran
from nbkit.capture.raw.arguments import A_TENSOR, describe
from nbkit.capture.scope.filters import EVERY_PHASE
from nbkit.ops.flops import call_flops, formulas, packet_name
from nbkit.schema import DIFFS, OPS, REPLAYED, RUNS, TIMINGS

PLACES = ("module", "phase", "source")


@dataclass(frozen=True)
class Replayed:
    """Holds what frames need of a call that has run again."""

    op: str
    number: int
    record: int
    place: dict[str, Any]
    device: torch.device
    is_same: bool
    shapes: str
    arguments: str | None
    flops: int | None
    moved_bytes: int
    runs_us: list[float]
    warmup: int

    @property
    def times_us(self) -> list[float]:
        """Returns the times of the runs that count."""
        return self.runs_us[self.warmup :]

    @classmethod
    def of(cls, ran: Ran, record: int, place: dict[str, Any], is_same: bool) -> "Replayed":
        built = ran.built
        shapes, values = [_shape(value) for value in built.args], [_value(value) for value in built.args]
        formula = formulas().get(packet_name(ran.traits.name))
        return cls(
            ran.traits.name,
            int(built.record.get("number", 0)),
            record,
            {name: text if isinstance(text := place.get(name), str) else None for name in PLACES},
            ran.device,
            is_same,
            json.dumps(shapes),
            _arguments(ran),
            None if formula is None else call_flops(formula, shapes, values),
            0 if needs_no_values(ran.traits) else _moved_bytes(built),
            ran.runs_us,
            ran.warmup,
        )


def replay_frames(calls: list[Replayed], rows: list[Row], repeats: int) -> dict[str, pd.DataFrame]:
    """Returns the frames of these calls, whose rows of `diffs` have their op_id as slot."""
    medians = np.array([np.median(call.times_us) if call.times_us else 0.0 for call in calls], dtype=np.float64)
    ids = list(range(len(calls)))
    places = {name: [call.place[name] for call in calls] for name in PLACES}
    places["phase"] = [phase or "other" for phase in places["phase"]]
    ops = OPS.frame(
        {
            "op_id": ids,
            "level": ["aten"] * len(ids),
            "op": [call.op for call in calls],
            **places,
            "step": [0] * len(ids),
            "device": [str(call.device) for call in calls],
            "thread": [0] * len(ids),
            "start_us": np.cumsum(medians) - medians,
            "total_time_us": medians,
            "self_time_us": medians,
            "flops": [call.flops for call in calls],
            "input_shapes": [call.shapes for call in calls],
            "arguments": [call.arguments for call in calls],
        }
    )
    diffs = diffs_frame(rows, np.arange(len(ids)), ops, EVERY_PHASE) if rows else DIFFS.frame()
    return {
        "ops": ops,
        "timings": _timings(calls),
        "runs": _runs(calls),
        "diffs": diffs,
        "replayed": _replayed(calls, ops, medians),
    }


def _timings(calls: list[Replayed]) -> pd.DataFrame:
    timed = [(op_id, np.array(call.times_us)) for op_id, call in enumerate(calls) if call.times_us]
    return TIMINGS.frame(
        {
            "op_id": [op_id for op_id, _ in timed],
            "repeats": [len(times) for _, times in timed],
            "median_us": [float(np.median(times)) for _, times in timed],
            "iqr_us": [float(np.subtract(*np.percentile(times, [75, 25]))) for _, times in timed],
            "min_us": [float(times.min()) for _, times in timed],
        }
    )


def _runs(calls: list[Replayed]) -> pd.DataFrame:
    counts = np.array([len(call.runs_us) for call in calls], dtype=np.int64)
    run = np.concatenate([np.arange(0), *map(np.arange, counts)])
    return RUNS.frame(
        {
            "op_id": np.repeat(np.arange(len(calls)), counts),
            "run": run,
            "is_warmup": run < np.repeat(np.array([call.warmup for call in calls], dtype=np.int64), counts),
            "time_us": np.array([time for call in calls for time in call.runs_us], dtype=np.float64),
        }
    )


def _replayed(calls: list[Replayed], ops: pd.DataFrame, medians: np.ndarray) -> pd.DataFrame:
    seconds = np.where(medians > 0, medians, np.nan) / 1e6
    flops = np.array([np.nan if call.flops is None else call.flops for call in calls], dtype=np.float64)
    moved = np.array([call.moved_bytes for call in calls], dtype=np.int64)
    return REPLAYED.frame(
        {
            **{name: ops[name].array for name in ("op_id", "op", "module", "phase", "source")},
            "call": [call.number for call in calls],
            "record": [call.record for call in calls],
            "is_same": [call.is_same for call in calls],
            "moved_bytes": moved,
            "flops_per_s": flops / seconds,
            "bytes_per_s": moved / seconds,
        }
    )


def _moved_bytes(built: BuiltCall) -> int:
    """Counts each tensor of the record once; elements that share their memory are one."""
    total = 0
    for entry in built.record["tensors"]:
        if "storage" in entry:
            strides = entry.get("stride", [1] * len(entry["shape"]))
            sizes = [size for size, stride in zip(entry["shape"], strides, strict=True) if stride]
            total += prod(sizes if all(entry["shape"]) else [0]) * NAMED["dtype"][entry["dtype"]].itemsize
    return total


def _shape(value: Any) -> Any:
    if isinstance(value, Tensor):
        return list(value.shape)
    if isinstance(value, list | tuple) and any(isinstance(item, Tensor) for item in value):
        return [_shape(item) for item in value]
    return []


def _value(value: Any) -> Any:
    is_list = isinstance(value, list | tuple) and any(isinstance(item, Tensor) for item in value)
    return None if is_list or isinstance(value, Tensor) else value


def _arguments(ran: Ran) -> str | None:
    arguments = [argument for argument in ran.traits.func._schema.arguments if not argument.is_out]
    values = list(map(_marked, ran.built.args[: len(arguments)]))
    for argument in arguments[len(values) :]:
        values.append(_marked(ran.built.kwargs.get(argument.name, argument.default_value)))
    return describe(ran.traits.func, values).text


def _marked(value: Any) -> Any:
    if isinstance(value, Tensor):
        return A_TENSOR
    if isinstance(value, list | tuple):
        return tuple(map(_marked, value))
    return None if isinstance(value, torch.Generator) else value
