"""Reads the casts of weights that a block of autocast keeps, and puts them back; torch has no way to ask for them."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch
from torch import Tensor
from torch._C import DisableTorchFunction
from torch.utils._python_dispatch import TorchDispatchMode

from nbkit.capture.calls.thread_state import AUTOCAST_DEVICES, autocast_nesting

Cast = tuple[Tensor, Tensor, bool]  # a weight, its cast, and whether gradients pass through that
CAST = torch.ops.aten._to_copy.default
# A weight of our own, whose cast goes with those of the block; whatever defaults are set where this is imported.
with torch.inference_mode(False):
    MARK = torch.ones(1, dtype=torch.float32, device="cpu", requires_grad=True)
    OF_MARK = torch.ones(1, dtype=torch.bfloat16, device="cpu")


class _CastError(Exception):
    """Ends a cast before it is made."""


class _Look(TorchDispatchMode):
    """Notes the first tensor that an op reads, and computes nothing; ends a cast, or answers with one that is known."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.known: Tensor | None = None

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is not CAST:
            self.seen: Tensor | None = args[0]
        elif self.known is None:
            raise _CastError
        return (args[0] if self.known is None else self.known).detach()

    def at(self, weight: Tensor, known: Tensor | None = None) -> Tensor | None:
        """Returns the cast of a weight that is kept; where none is, `known` is kept from now on."""
        self.known, self.seen = known, None
        with suppress(_CastError):
            torch.mm(weight, weight)  # an op that casts; no kernel comes to see its shapes
        return self.seen


@contextmanager
def _looking() -> Iterator[_Look]:
    """Has autocast on for each device, and nothing of the step's own in between."""
    before = {device: torch.is_autocast_enabled(device) for device in AUTOCAST_DEVICES}
    try:
        with DisableTorchFunction(), torch.enable_grad(), _Look() as look:
            for device in before:
                torch.set_autocast_enabled(device, True)
            yield look
    finally:
        for device, was_enabled in before.items():
            torch.set_autocast_enabled(device, was_enabled)


def _keeps_casts() -> bool:
    return autocast_nesting() > 0 and torch.is_autocast_cache_enabled()


def cached_casts(weights: Iterable[Tensor]) -> list[Cast]:
    """Returns the casts of those weights that the block of autocast around this keeps."""
    if not _keeps_casts():
        return []
    with _looking() as look:
        kept = [one for one in weights if one.dtype is torch.float32 and one.requires_grad and one.is_leaf]
        found = [(weight, look.at(weight)) for weight in kept if weight.device.type in AUTOCAST_DEVICES]
        return [(weight, cast.detach(), cast.requires_grad) for weight, cast in found if cast is not None]


def put_back_casts(casts: Iterable[Cast]) -> None:
    """Has the block of autocast keep these casts and no others."""
    torch.clear_autocast_cache()
    with _looking() as look:
        for weight, cast, has_gradient in casts:
            with torch.set_grad_enabled(has_gradient):
                look.at(weight, cast)


def is_emptied() -> bool:
    """Returns whether no block keeps casts, or it has dropped all since this was asked last."""
    if not _keeps_casts():
        return True
    with _looking() as look:
        return look.at(MARK) is None and look.at(MARK, OF_MARK) is not None
