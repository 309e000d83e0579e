"""Measures gradients, and what a step changed in parameters; the caller runs it isolated from the step."""

from typing import NamedTuple

import torch
from torch import Tensor, UntypedStorage

from nbkit.capture.raw.shards import local_shard

INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
# Of several steps, the one that tells most.
STATES = ("none", "zero", "finite", "non_finite")


class Gradient(NamedTuple):
    """Describes the gradient of one parameter; `state` is one of STATES."""

    state: str
    norm: float | None = None
    zero_fraction: float | None = None


NO_GRADIENT = Gradient("none")


def has_plain_values(tensor: Tensor) -> bool:
    """Returns whether values can be read without running code of a subclass or of a transform of torch.func."""
    return not _is_wrapper(tensor) and _is_dense(tensor)


def _is_wrapper(tensor: Tensor) -> bool:
    return type(tensor).__torch_dispatch__ is not Tensor.__torch_dispatch__


def _is_dense(tensor: Tensor) -> bool:
    return (
        tensor.layout is torch.strided
        and not tensor.is_quantized
        and not tensor.is_nested
        and tensor.device.type != "meta"
        and not torch._C._functorch.is_functorch_wrapped_tensor(tensor)
    )


def values_of(tensor: Tensor) -> Tensor | None:
    """Returns the values in a plain tensor: of a DTensor those in this process; null where they cannot be read."""
    held = local_shard(tensor)
    if _is_wrapper(held) and held.device.type == torch._C._get_privateuse1_backend_name() and _is_dense(held):
        held = held.cpu()  # a simulated device, whose kernels may be wrong
    return held if has_plain_values(held) else None


def memory_of(tensor: Tensor) -> UntypedStorage | None:
    """Returns the memory of a tensor, of a DTensor that of its part in this process; null if it has none of one."""
    held = local_shard(tensor)
    return held.untyped_storage() if _is_dense(held) else None


def is_part(tensor: Tensor) -> bool:
    """Returns whether other processes may hold other values of a DTensor."""
    return tensor is not local_shard(tensor) and not all(
        placement.is_replicate()
        for placement, size in zip(tensor.placements, tensor.device_mesh.shape, strict=True)  # type: ignore[attr-defined]
        if size > 1
    )


def measured_gradient(gradient: Tensor | None) -> Gradient | None:
    """Returns what a gradient is; null of one that cannot be read, or whose zeros are those of one process."""
    if gradient is None:
        return NO_GRADIENT
    if gradient.layout is torch.sparse_coo and gradient.device.type != "meta":
        whole, values = gradient.numel(), gradient.coalesce().values()
    elif (found := values_of(gradient)) is not None:
        whole, values = found.numel(), found
    else:
        return None
    if not whole:
        return None
    if values.is_floating_point() and values.element_size() == 1:
        values = values.float()  # nothing counts what is not zero in float8
    filled = int(torch.count_nonzero(values))
    if not filled:
        return None if is_part(gradient) else Gradient("zero", 0.0, 1.0)
    finite = bool(torch.isfinite(values).all())
    return Gradient("finite" if finite else "non_finite", norm_of(values), 1 - filled / whole)


def norm_of(tensor: Tensor) -> float:
    """Returns the 2-norm in float64; in float32 on devices that have no float64."""
    real = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    wide = torch.float32 if tensor.device.type == "mps" else torch.float64
    return float(torch.linalg.vector_norm(real.to(wide)))


def later(before: Gradient | None, now: Gradient | None) -> Gradient | None:
    """Returns which of two steps tells more about a gradient; of equal ones the later."""
    if before is None or now is None:
        return now or before
    return before if STATES.index(before.state) > STATES.index(now.state) else now


def measured_change(before: Tensor, after: Tensor) -> tuple[float | None, float | None]:
    """Returns norm of the change / norm before, and the share of elements whose bits changed; null if unknown."""
    if before.shape != after.shape or before.dtype != after.dtype or before.device != after.device:
        return None, None
    if not before.numel():
        return None, None
    differs = bits_of(before) != bits_of(after)
    changed = int(torch.count_nonzero(differs.any(-1) if before.is_complex() else differs)) / before.numel()
    if not (before.is_floating_point() or before.is_complex()):
        return None, changed
    norm = norm_of(before)
    wide = torch.complex128 if before.is_complex() else torch.float64
    if before.device.type == "mps":
        wide = torch.float32
    return (norm_of(after.to(wide) - before.to(wide)) / norm if norm else None), changed


def bits_of(tensor: Tensor) -> Tensor:
    """Returns the tensor as integers, two of a complex number: NaN is equal to itself, and 0 is not equal to -0."""
    tensor = tensor.resolve_conj().resolve_neg()
    tensor = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    return tensor.view(INTEGERS[tensor.element_size()]) if tensor.is_floating_point() else tensor
