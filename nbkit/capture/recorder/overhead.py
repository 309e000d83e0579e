"""Estimates the overhead of recording from a few ops with and without the recorder."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cache, partial
from time import perf_counter_ns
from typing import Any

import torch

from nbkit.capture.raw.recording import Recording
from nbkit.capture.recorder.dispatch_mode import OpMode
from nbkit.capture.recorder.observed_ops import ObservedOps
from nbkit.capture.step.function_mode import ApiMode

ROUNDS, REPEATS, OPS = 5, 20, 6


def recorder_us(recording: Recording) -> float:
    """Estimates the microseconds that recording added to the step: recorded calls times the overhead of one here.

    Reading values and running a reference are measured, not estimated. The rest is a lower bound: in a real step the
    recorder also finds colder caches than in this measurement.
    """
    per_aten, per_api = call_overheads_us(recording.native)
    first_tensors = recording.ops.integers("first_tensor")
    api = int((first_tensors == -1).sum())
    spent = recording.spent.array()
    reading = float((spent[:, 1] - spent[:, 0]).sum()) / 1e3
    return (len(first_tensors) - api) * per_aten + api * per_api + reading


@cache
def call_overheads_us(native: Any | None) -> tuple[float, float]:
    """Measures the microseconds that recording adds to an aten op and an API call, once per process and recorder.

    Ops of several kinds on small tensors, bare and under each mode in turn, the fastest of the rounds, since what
    disturbs them only adds. It draws no random numbers. It runs in a thread of its own, where no mode, recording or
    profiler of the user's sees it.
    """
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(_measured, native).result()


def _measured(native: Any | None) -> tuple[float, float]:
    recording = Recording(native)
    recorder: Callable[..., ObservedOps | OpMode] = partial(OpMode, statistics=None) if native is None else ObservedOps
    overheads: dict[str, list[float]] = {"bare": [], "aten": [], "api": []}
    with torch.no_grad():
        for _ in range(ROUNDS):
            overheads["bare"].append(_call_us(nullcontext()))
            overheads["aten"].append(_call_us(recorder(recording, on_range=lambda begins: None)))
            overheads["api"].append(_call_us(ApiMode(recording)))
    bare = min(overheads["bare"])
    return max(min(overheads["aten"]) - bare, 0.0), max(min(overheads["api"]) - bare, 0.0)


def _call_us(mode: AbstractContextManager[object]) -> float:
    x, y = torch.ones(8, 8), torch.ones(8, 8)
    with mode:
        _few_ops(x, y)  # what is done once for each op is not what a call costs
        start = perf_counter_ns()
        for _ in range(REPEATS):
            _few_ops(x, y)
        return (perf_counter_ns() - start) / 1e3 / (REPEATS * OPS)


def _few_ops(x: torch.Tensor, y: torch.Tensor) -> None:
    torch.add(torch.mm(x.t(), torch.mul(x, y)).view(64), 1.0).sum()
