"""The dtypes that the results of a call must have, as torch's meta kernel of the op says.

The reference cannot tell: it runs in float64. Ops that write to their arguments keep the dtypes of these.
"""

from typing import Any

import torch
from torch import Tensor

from nbkit.capture.raw.tensor_registry import PLAIN
from nbkit.capture.replay.copies import all_tensors, mapped_call, tensors_in
from nbkit.capture.replay.op_traits import OpTraits

Dtypes = tuple[torch.dtype, ...]
META = torch.device("meta")


class ResultDtypes:
    """Remembers dtypes of results by the op and the dtypes of its arguments."""

    def __init__(self) -> None:
        self.known: dict[Any, Dtypes | None] = {}

    def of(self, traits: OpTraits, args: Any, kwargs: Any) -> Dtypes | None:
        """The dtype of each result; None where torch does not say."""
        if traits.is_writing:
            return None
        key = traits.func, _kind(args), tuple((name, _kind(value)) for name, value in kwargs.items())
        if key not in self.known:
            self.known[key] = _by_meta_kernel(traits, args, kwargs)
        return self.known[key]


def _kind(value: Any) -> Any:
    """What of an argument may decide on a dtype."""
    if isinstance(value, Tensor):
        return value.dtype, value.dim() == 0
    if isinstance(value, list | tuple):
        return tuple(map(_kind, value))
    return value if value is None or isinstance(value, bool | torch.dtype) else type(value)


def _by_meta_kernel(traits: OpTraits, args: Any, kwargs: Any) -> Dtypes | None:
    floating = {tensor.dtype for tensor in all_tensors(args, kwargs) if tensor.is_floating_point()}
    if len(floating) > 1 and not traits.is_pointwise:
        return None  # norms of mixed dtypes: each kernel has rules of its own
    try:
        known = _dtypes(traits, *mapped_call(args, kwargs, _on_meta, {}))
        home = {tensor.device.type for tensor in all_tensors(args, kwargs)}
        # Statistics that a norm notes for its backward op: meta kernels have those of a GPU, which are float32.
        if (
            home == {"cpu"}
            and not traits.is_random
            and any(kind not in floating for kind in known if kind.is_floating_point)
        ):
            return _dtypes(traits, *mapped_call(args, kwargs, _zeros, {}))
        return known
    except Exception:  # most of all: it has no meta kernel, or its shapes depend on values
        return None


def _dtypes(traits: OpTraits, args: Any, kwargs: Any) -> Dtypes:
    return tuple(tensor.dtype for tensor in tensors_in(traits.func(*args, **kwargs)))


def _zeros(value: Any) -> Any:
    return torch.zeros_like(value) if isinstance(value, Tensor) else value


def _on_meta(value: Any) -> Any:
    if isinstance(value, torch.device):
        return META
    if not isinstance(value, Tensor):
        return value
    if type(value) not in PLAIN or value.layout is not torch.strided or value.is_quantized:
        raise TypeError(f"a {type(value).__name__} has no meta tensor of its kind")
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=META)
