"""Counts the units of activations that are 0 in every row, while a step runs in training mode."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from nbkit.capture.audit.measures import is_part, values_of
from nbkit.capture.raw.recording import ModuleCall, Recording
from nbkit.capture.replay.isolated import timed_isolated
from nbkit.capture.step.function_mode import ApiMode
from nbkit.findings.training.facts import Activation

# Results are 0 or more, so that the sum of a unit says whether all are 0; amax takes up to 60 times as long, with
# channels_last. ReLU6 is a hardtanh.
WATCHED: tuple[Callable[..., Any], ...] = (
    F.relu, F.relu6, F.hardtanh, torch.relu, torch.relu_, Tensor.relu, Tensor.relu_
)  # fmt: skip


class Seen(NamedTuple):
    """Describes one call: its place in Recording.ops, and the sum of each unit, on the device."""

    slot: int
    last: Tensor
    channels: Tensor | None  # with dimension 1 as units, of three dimensions or more
    numel: int


class ActivationAudit:
    """Looks at results of ReLU-like calls, in modules in training mode, while installed."""

    def __init__(self, recording: Recording, api: ApiMode) -> None:
        self.recording, self.api = recording, api
        self.seen: list[Seen] = []

    def install(self) -> None:
        self.api.watched.update(dict.fromkeys(WATCHED, self._met))

    def remove(self) -> None:
        self.api.watched.clear()

    def _met(self, result: Any, slot: int, module_call: int) -> None:
        if module_call < 0 or not isinstance(result, Tensor) or not result.requires_grad or result.dim() < 2:
            return
        if ModuleCall(*self.recording.module_calls[module_call]).training:
            timed_isolated(self.recording, lambda: self._look(result, slot), self._trouble)

    def _look(self, result: Tensor, slot: int) -> None:
        values, dims = None if is_part(result) else values_of(result.detach()), range(result.dim())
        if values is None or not values.numel():
            return
        last = values.sum([*dims][:-1])
        channels = values.sum([dim for dim in dims if dim != 1]) if len(dims) > 2 else None
        self.seen.append(Seen(slot, last, channels, result.numel()))

    def _trouble(self, error: Exception) -> None:
        self.recording.skip(f"activations not looked at ({type(error).__name__})")

    def activations(self, op_ids: np.ndarray) -> list[Activation]:
        """Returns what was seen; `op_ids` holds one per slot of recording.ops."""
        return [
            Activation(int(op_ids[seen.slot]), _is_zero(seen.last), _is_zero(seen.channels), seen.numel)
            for seen in self.seen
            if seen.slot < len(op_ids)
        ]


def _is_zero(sums: Tensor | None) -> np.ndarray | None:
    return None if sums is None else (sums == 0).cpu().numpy()
