"""Follows averages of weights in half precision: whether they move, and how far from the weights they are."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from weakref import ref

import numpy as np
import torch
from torch import Tensor

from nbkit.capture.audit.measures import bits_of, has_plain_values
from nbkit.capture.audit.models import AuditedModel, Held
from nbkit.capture.raw.recording import Recording
from nbkit.capture.replay.isolated import timed_isolated
from nbkit.capture.step.function_mode import ApiMode
from nbkit.findings.training.facts import Average

HALF = (torch.bfloat16, torch.float16)
UPDATES = (Tensor.lerp_, Tensor.add_, Tensor.copy_, torch._foreach_lerp_, torch._foreach_add_)
# An average of weights is nearer to them than this share of their norm.
NEAR = 0.5


class Seen(NamedTuple):
    """Holds a tensor that was updated, by its memory, its values after the first update, and where all are in ops."""

    storage: Any  # a weak reference
    offset: int
    first: Tensor
    slots: list[int]

    def now(self) -> Tensor | None:
        """Returns what it holds now; null if it is gone."""
        storage = self.storage()
        if storage is None:
            return None
        return self.first.new_empty(0).set_(storage, self.offset, self.first.shape, self.first.stride())


class AverageAudit:
    """Notes what of the shape of a weight is written to without autograd, in half precision, while installed."""

    def __init__(self, recording: Recording, api: ApiMode, models: Sequence[AuditedModel]) -> None:
        self.recording, self.api, self.models = recording, api, models
        self.shapes: tuple[int, set[torch.Size]] = (0, set())  # of the weights of so many models
        self.seen: dict[tuple[int, torch.Size], Seen] = {}

    def install(self) -> None:
        self.api.watched.update(dict.fromkeys(UPDATES, self._met))

    def _met(self, result: Any, slot: int, module_call: int) -> None:
        tensors = [result] if isinstance(result, Tensor) else result
        halves = [one for one in tensors if one.dtype in HALF and has_plain_values(one)]
        if halves and not torch.is_grad_enabled():
            timed_isolated(self.recording, lambda: self._note(halves, slot), lambda error: None)

    def _note(self, tensors: Sequence[Tensor], slot: int) -> None:
        if self.shapes[0] != len(self.models):
            held = [one for model in self.models for one in model.held()]
            self.shapes = len(self.models), {one.tensor.shape for one in held if one.kind == "parameter"}
        for tensor in tensors:
            key, storage = (tensor.data_ptr(), tensor.shape), tensor.untyped_storage()
            if tensor.shape not in self.shapes[1]:
                continue
            if key not in self.seen or self.seen[key].storage() is not storage:
                self.seen[key] = Seen(ref(storage), int(tensor.storage_offset()), tensor.detach().clone(), [])
            self.seen[key].slots.append(slot)

    def averages(self, op_ids: np.ndarray, steps: np.ndarray, weights: Iterable[tuple[str, Held]]) -> list[Average]:
        """Returns those that were updated in two steps or more, with the weights that they are averages of.

        `op_ids` holds one per slot of recording.ops, `steps` one per op.
        """
        weights, found = [*weights], []
        addresses = {one.tensor.data_ptr() for _, one in weights}
        for seen in self.seen.values():
            ops, now = [int(op_ids[slot]) for slot in seen.slots if slot < len(op_ids)], seen.now()
            if now is None or len({*steps[ops]}) < 2 or now.data_ptr() in addresses:
                continue
            near = [
                (_distance(now, one.tensor), at) for at, (_, one) in enumerate(weights) if one.tensor.shape == now.shape
            ]
            if near and min(near)[0] < NEAR:
                found.append(_average(seen.first, now, *weights[min(near)[1]], ops[-1]))
        return found


def _distance(average: Tensor, weight: Tensor) -> float:
    return float((weight.detach().float() - average.float()).norm() / weight.detach().float().norm())


def _average(first: Tensor, now: Tensor, model: str, weight: Held, op_id: int) -> Average:
    """Returns how many elements are off by more than rounding, and how many of these moved."""
    average, exact = now.float(), weight.tensor.detach().float()
    is_off = (exact - average).abs() > 2 * torch.finfo(now.dtype).eps * torch.maximum(exact.abs(), average.abs())
    moved = int(((bits_of(now) != bits_of(first)) & is_off).sum())
    dtype = str(now.dtype).removeprefix("torch.")
    return Average(model, weight.name, dtype, op_id, moved, int(is_off.sum()), now.numel())
