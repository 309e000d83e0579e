"""Stands for functions of torch that write lengths of sequences into memory, which without values is not there."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor

from nbkit.capture.raw.patching import Patch


@contextmanager
def padding_of_fakes() -> Iterator[None]:
    """Has pad_packed_sequence run the ops that torch runs, on sequences whose sizes of batches are real."""
    patch = Patch(torch._VF, "_pad_packed_sequence")

    def padded(
        data: Tensor, batch_sizes: Tensor, batch_first: bool, padding_value: float, total_length: int
    ) -> tuple[Tensor, Tensor]:
        sizes: list[int] = [] if isinstance(batch_sizes, FakeTensor) else batch_sizes.tolist()
        if not sizes or 0 <= total_length < len(sizes):  # torch says what is wrong
            both: tuple[Tensor, Tensor] = patch.before(data, batch_sizes, batch_first, padding_value, total_length)
            return both
        out = torch.full(
            (max(len(sizes), total_length), sizes[0], *data.shape[1:]),
            padding_value,
            dtype=data.dtype,
            device=data.device,
        )
        step = place = 0
        for size, steps in ((size, len([*run])) for size, run in groupby(sizes)):
            rows = data[place : place + steps * size]
            out[step : step + steps, :size].copy_(rows.view(steps, size, *data.shape[1:]))
            step, place = step + steps, place + steps * size
        lengths = torch.tensor([sum(size > at for size in sizes) for at in range(sizes[0])])
        return out.transpose(0, 1) if batch_first else out, lengths

    patch.install(padded)
    try:
        yield
    finally:
        patch.remove()


@contextmanager
def ctc_of_fakes() -> Iterator[None]:
    """Has the CTC loss take lengths that are numbers as tensors."""
    patch = Patch(torch, "ctc_loss")

    def ctc_loss(log_probs: Tensor, targets: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        lengths = [given if isinstance(given, Tensor) else torch.tensor(given) for given in args[:2]]
        loss: Tensor = patch.before(log_probs, targets, *lengths, *args[2:], **kwargs)
        return loss

    patch.install(ctc_loss)
    try:
        yield
    finally:
        patch.remove()
