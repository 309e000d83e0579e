"""How far a compared result is from the shadow's, and which part of that its inputs brought along."""

from math import sqrt
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nbkit.capture.diff.mode import role_of
from nbkit.capture.diff.shadow.mode import ShadowMode
from nbkit.capture.diff.shadow.shadows import is_shadowed
from nbkit.capture.replay.copies import all_tensors
from nbkit.capture.replay.reference import CPU, Results
from nbkit.numerics.precision import precision_of


class Errors(NamedTuple):
    """Norm ratios of one compared tensor; `slot` is the place of its op in Recording.ops."""

    slot: int
    role: str
    position: int
    local: float | None = None
    propagated: float | None = None
    total: float | None = None
    is_noise: bool = False  # zero but for rounding, so that its total error says nothing


class ErrorLog:
    """Takes each compared call and keeps the errors of its tensors."""

    def __init__(self, mode: ShadowMode) -> None:
        self.mode = mode
        self.errors: list[Errors] = []

    def note(self, slot: int, actual: Results, expected: Results, arguments: tuple[Any, Any]) -> None:
        """The errors of one call: against the reference from its own inputs, and against its shadow."""
        made, self.mode.made = self.mode.made, {}
        for index, (tensor, reference) in enumerate(zip(actual.all, expected.all, strict=True)):
            if tensor.shape != reference.shape:
                continue
            role, position = role_of(actual, index, arguments)
            errors = Errors(slot, role, position, norm_ratio(tensor, reference))
            shadow = made.get(id(tensor))
            if shadow is not None and shadow.shape == tensor.shape:
                total = norm_ratio(tensor, shadow)
                is_noise = _is_noise(tensor, shadow, total, [*all_tensors(*arguments), *actual.all])
                errors = errors._replace(propagated=norm_ratio(reference, shadow), total=total, is_noise=is_noise)
            self.errors.append(errors)


def _is_noise(tensor: Tensor, shadow: Tensor, total: float, around: list[Tensor]) -> bool:
    """Whether a result is zero but for rounding: in the shadow it is below eps times what the op reads and makes.

    The gradient of a bias before a BatchNorm is such a one, or the mean of what is normalized already.
    """
    precision = precision_of(str(tensor.dtype).removeprefix("torch."))
    if precision is None or total <= sqrt(precision.eps) or _finite(tensor).numel() < _finite(shadow).numel():
        return False
    scale = max((_rms(nearby) for nearby in around if is_shadowed(nearby)), default=0.0)
    return _rms(shadow) < precision.eps * scale


def _rms(tensor: Tensor) -> float:
    """Of the values that are finite: what reads a mask of -Inf is no noise beside it."""
    values = _finite(tensor)
    return float(torch.linalg.vector_norm(values)) / sqrt(max(values.numel(), 1))


def _finite(tensor: Tensor) -> Tensor:
    values = wide(tensor)
    return values[torch.isfinite(values)]


def norm_ratio(actual: Tensor, expected: Tensor) -> float:
    """||found - wanted|| / ||wanted|| in float64: 0/0 is 0, x/0 is inf.

    Elements that are both NaN or both the same Inf are left out; it is inf where only one of a pair is not finite.
    """
    left, right = wide(actual), wide(expected)
    error, size = (float(torch.linalg.vector_norm(values)) for values in (left - right, right))
    if not (error < torch.inf and size < torch.inf):
        differs = ~((left != left) & (right != right)) & (left != right)
        left, right = left[differs], right[torch.isfinite(right)]
        rest = wide(expected)[differs]
        if not bool((torch.isfinite(left) & torch.isfinite(rest)).all()):
            return torch.inf
        # What is finite can have a square that is not.
        scale = max(float(values.abs().amax()) if values.numel() else 0.0 for values in (left, rest, right)) or 1.0
        error = float(torch.linalg.vector_norm(left / scale - rest / scale))
        size = float(torch.linalg.vector_norm(right / scale))
    return error / size if size else torch.inf if error else 0.0


def wide(tensor: Tensor) -> Tensor:
    """The values of a tensor on the CPU, in float64 or complex128, as a line."""
    tensor = tensor.detach()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    return tensor.to(CPU, torch.complex128 if tensor.is_complex() else torch.float64).reshape(-1)
