"""Follows optimizer steps: phase, step count and the API row under which an optimizer's ops stand."""

import sys
from time import perf_counter_ns
from typing import Any
from weakref import WeakSet

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from nbkit.capture.raw.recording import (
    CLOSURE_CODE,
    OPTIMIZER_CODE,
    Recording,
    next_sequence_number,
)
from nbkit.capture.raw.source import op_location
from nbkit.capture.step.function_mode import ApiMode


class OptimizerSteps:
    """Follows `Optimizer.step()` while installed.

    torch's own optimizers ask every tensor for a dozen properties; the function mode is off inside them, and their
    aten ops hang directly under the row of the step.
    """

    def __init__(self, recording: Recording, api: ApiMode) -> None:
        self.recording = recording
        self.api = api
        self.handles: list[Any] = []
        self.met: WeakSet[Any] = WeakSet()  # all that have stepped
        # outer code and parent, whether the mode is off, slot, record up to its end
        self.running: list[tuple[int, int, bool, int, tuple[Any, ...]]] = []
        self.ranges = 0

    def install(self) -> None:
        self.resume()

    def remove(self) -> None:
        while self.running:
            self._finish()
        self.pause()

    def resume(self) -> None:
        """Sees steps that begin from here on."""
        self.handles = [
            register_optimizer_step_pre_hook(self._begin),
            register_optimizer_step_post_hook(self._end),
        ]

    def pause(self) -> None:
        """Sees no step until resume(); one that runs goes on."""
        for handle in self.handles:
            handle.remove()
        self.handles = []

    def on_range(self, begins: bool) -> None:
        """Ends the step where its profiler range closes: also when it raises, which the post hook misses."""
        if not self.running:
            return
        if begins:
            self.ranges += 1
        elif self.ranges:
            self.ranges -= 1
        else:
            self._finish()

    def _begin(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        recording, thread = self.recording, self.recording.main
        self.met.add(optimizer)
        slot = recording.ops.reserve()
        closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
        is_torch = type(optimizer).__module__.startswith("torch.optim")
        # The step's own row belongs to the optimizer phase, wherever it was called from.
        context = (thread.context[0], OPTIMIZER_CODE, *thread.context[2:])
        objects = step_name(optimizer), context, True, op_location(sys._getframe(1)), None
        record = (*objects, thread.parent, next_sequence_number(), -1, perf_counter_ns())
        off = is_torch and closure is None
        if off:
            self.api.pause()
        self.running.append((recording.code, thread.parent, off, slot, record))
        self.ranges = 0
        thread.parent = slot
        recording.code = CLOSURE_CODE if closure is not None else OPTIMIZER_CODE
        if optimizer.defaults.get("differentiable"):
            recording.code = OPTIMIZER_CODE
        recording.update_context(thread)

    def _end(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self.running:
            self.recording.step += 1
            self._finish()

    def _finish(self) -> None:
        recording = self.recording
        recording.code, recording.main.parent, off, slot, record = self.running.pop()
        recording.ops.put(slot, (*record, perf_counter_ns(), -1, 0, 0))
        if off:
            self.api.resume()
        recording.update_context(recording.main)


def step_name(optimizer: Any) -> str:
    """Returns `torch.optim.AdamW.step` for torch's own, module and class for others."""
    kind = type(optimizer)
    module = "torch.optim" if getattr(torch.optim, kind.__name__, None) is kind else kind.__module__
    return f"{module}.{kind.__qualname__}.step"
