"""Spoils the values of a result: an error of a given size, flushed denormals, a lost write, the previous result."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from nbkit.simulated.call import Call, NotApplicableError, Results
from nbkit.simulated.faults.kinds.kind import Kind


def relative_error(call: Call, size: float, memory: dict[Any, Any]) -> Results:
    """Returns every element too large by the share `size` of itself."""
    return each_real(call, lambda result: _scaled(result, 1 + size))


def flush_denormals(call: Call, size: None, memory: dict[Any, Any]) -> Results:
    """Returns zeros, with the sign kept, in place of values below the dtype's smallest normal number."""
    return each_real(call, _flushed)


def each_real(call: Call, change: Callable[[Tensor], Tensor]) -> Results:
    """Returns the results with those changed that hold floating-point or complex numbers."""
    require_floats(call)
    return [change(result) if is_real(result) else result for result in call.results]


def is_real(tensor: Tensor) -> bool:
    """Returns whether a tensor holds floating-point or complex numbers."""
    return tensor.is_floating_point() or tensor.is_complex()


def require_floats(call: Call) -> None:
    """Raises NotApplicableError unless some result holds floating-point or complex numbers."""
    if not any(is_real(result) for result in call.results):
        raise NotApplicableError(f"{call.func} has no floating-point result")


def _scaled(tensor: Tensor, factor: float) -> Tensor:
    # In double precision, so that a factor next to 1 is not rounded away before the product is.
    wide = torch.promote_types(tensor.dtype, torch.float64)
    return (tensor.to(wide) * factor).to(tensor.dtype)


def _flushed(tensor: Tensor) -> Tensor:
    if tensor.is_complex():
        return torch.view_as_complex(_flushed(torch.view_as_real(tensor.resolve_conj())))
    return torch.where(tensor.abs() < torch.finfo(tensor.dtype).tiny, torch.zeros_like(tensor).copysign(tensor), tensor)


def dropped_write(call: Call, size: None, memory: dict[Any, Any]) -> Results:
    """Returns the tensors that the op writes to as they were before."""
    if not call.before:
        raise NotApplicableError(f"{call.func} writes into none of its inputs")
    return [*call.before.values(), *call.results[len(call.before) :]]


def stale_result(call: Call, size: None, memory: dict[Any, Any]) -> Results | None:
    """Returns the results of the earlier call of the same op with the same shapes and dtypes; None for the first."""
    key = (call.func, *((tuple(result.shape), result.dtype) for result in call.results))
    earlier: Results | None = memory.get(key)
    memory[key] = [result.clone() for result in call.results]
    return earlier


def unzeroed_buffer(call: Call, size: None, memory: dict[Any, Any]) -> Results | None:
    """Returns results added to those of the call before, which nobody has cleared; None for the first."""
    require_floats(call)
    earlier = stale_result(call, size, memory)
    if earlier is None:
        return None
    pairs = zip(call.results, earlier, strict=True)
    return [result + before if is_real(result) else result for result, before in pairs]


KINDS = (
    Kind(
        "relative_error",
        relative_error,
        "every element is too large by a share of itself",
        "the share",
        1e-2,
        smallest=-1e6,
        largest=1e6,
    ),
    Kind("flush_denormals", flush_denormals, "numbers below the dtype's smallest normal one become zero"),
    Kind("dropped_write", dropped_write, "an in-place op leaves the tensor as it was"),
    Kind(
        "stale_result",
        stale_result,
        "the result is that of the call before, of the same op and sizes",
        needs="an earlier call with results of the same sizes",
        remembers=True,
    ),
    Kind(
        "unzeroed_buffer",
        unzeroed_buffer,
        "the result is added to that of the call before, of the same op and sizes",
        needs="an earlier call with results of the same sizes",
        remembers=True,
    ),
)
