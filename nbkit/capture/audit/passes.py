"""Notes each backward pass while a recording runs, whether an optimizer uses its gradients, and what closes its way."""

import sys
from collections.abc import Callable, Iterator
from threading import get_ident
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.utils.checkpoint import CheckpointFunction

from nbkit.capture.audit.measures import measured_gradient
from nbkit.capture.raw.patching import Patch
from nbkit.capture.raw.recording import Recording
from nbkit.capture.raw.source import code_text, location_text, user_location
from nbkit.capture.replay.isolated import timed_isolated
from nbkit.findings.training.facts import Closed, Pass

Noted = TypeVar("Noted", Pass, Closed)


class Passes:
    """Holds the backward passes of a recording, while installed; `parameters` yields what they compute gradients of.

    `on_begin` is called before each. Gradients are looked at when a pass begins, so that it does not matter how they
    were cleared.
    """

    def __init__(
        self, recording: Recording, parameters: Callable[[], Iterator[Tensor]], on_begin: Callable[[], object]
    ) -> None:
        self.recording, self.parameters, self.on_begin = recording, parameters, on_begin
        self.noted: list[Pass] = []  # with rows of recording.ops
        self.is_pending = False  # the last one left gradients, and no optimizer has stepped since
        self.depth = 0
        self.creates_graph = False
        self.patch = Patch(torch.autograd, "backward")

    def install(self) -> None:
        patch, passes = self.patch, self

        def backward(*args: Any, **kwargs: Any) -> Any:
            # A checkpoint may run a backward pass inside of one; those of other threads are not recorded.
            if get_ident() != passes.recording.main.ident or passes.depth:
                return patch.before(*args, **kwargs)
            timed_isolated(passes.recording, passes._begin, passes._trouble)
            # As torch.Tensor.backward gives it: tensors, their gradients, retain_graph, create_graph.
            passes.creates_graph = bool(kwargs.get("create_graph", args[3] if len(args) > 3 else False))
            passes.depth += 1
            try:
                return patch.before(*args, **kwargs)
            finally:
                passes.depth -= 1
                timed_isolated(passes.recording, passes._end, passes._trouble)

        patch.install(backward)

    def stepped(self) -> None:
        """Notes that an optimizer steps, or that a GradScaler skips that: gradients may be cleared now."""
        self.is_pending = False

    def _begin(self) -> None:
        self.on_begin()
        if self.is_pending and not self._has_gradients():
            self.noted[-1] = self.noted[-1]._replace(is_cleared=True)
        self.is_pending = False
        self.row = self.recording.ops.row_count

    def _end(self) -> None:
        rows = range(self.row, self.recording.ops.row_count)
        self.noted.append(Pass(rows, self.recording.step, creates_graph=self.creates_graph))
        self.is_pending = self._has_gradients()

    def _has_gradients(self) -> bool:
        """Returns whether a gradient is there that is not 0; the first one mostly tells."""
        gradients = (parameter.grad for parameter in self.parameters())
        return any(gradient is not None and _is_filled(gradient) for gradient in gradients)

    def _trouble(self, error: Exception) -> None:
        self.is_pending = False
        self.recording.skip(f"backward passes not looked at ({type(error).__name__})")


class Checkpoints:
    """Holds, while installed, the calls of checkpoint(use_reentrant=True) with autograd on and no input that needs it.

    To autograd the part is one function of its inputs: its parameters are none of them.
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.noted: list[Closed] = []  # with rows of recording.ops
        self.patch = Patch(CheckpointFunction, "apply")

    def install(self) -> None:
        patch, recording, noted = self.patch, self.recording, self.noted

        def apply(*args: Any) -> Any:
            is_open = any(isinstance(one, Tensor) and one.requires_grad for one in args)
            if is_open or not torch.is_grad_enabled() or get_ident() != recording.main.ident:
                return patch.before(*args)
            place, row = user_location(sys._getframe(1)), recording.ops.row_count
            try:
                return patch.before(*args)
            finally:
                if place is not None:
                    rows = range(row, recording.ops.row_count)
                    noted.append(Closed(rows, location_text(place), code_text(place) or ""))

        patch.install(apply)


def _is_filled(gradient: Tensor) -> bool:
    """Returns whether an element is not 0; true where values cannot be read."""
    found = measured_gradient(gradient)
    return found is None or found.state != "zero"


def with_op_ids(noted: list[Noted], op_ids: np.ndarray) -> list[Noted]:
    """Returns what was noted of rows of recording.ops with op_ids; `op_ids` holds one per row."""
    return [one._replace(ops=span(op_ids[one.ops.start : one.ops.stop])) for one in noted]


def span(op_ids: np.ndarray) -> range:
    """Returns the range that these op_ids are in; -1 is none."""
    there = op_ids[op_ids >= 0]
    return range(int(there.min()), int(there.max()) + 1) if len(there) else range(0)
