"""Reads a tensor's values: its greatest magnitude, its NaN and Inf, an element, its range."""

from math import inf

import torch
from torch import Tensor
from torch._subclasses import FakeTensor

from nbkit.capture.raw.statistics import dense
from nbkit.schema.message import Message, element

NARROWEST = (torch.float8_e4m3fn, torch.float8_e4m3fnuz, torch.float8_e5m2, torch.float8_e5m2fnuz)


def values_of(tensor: Tensor) -> Tensor:
    """Returns the stored values of a tensor of any layout, float8 widened since torch computes nothing in it."""
    values = tensor if tensor.layout is torch.strided and not tensor.is_nested else dense(tensor)
    return values.to(torch.float32) if values.dtype in NARROWEST else values


def is_float(tensor: Tensor) -> bool:
    """Returns whether a tensor holds numbers that can fail to be finite."""
    return tensor.is_floating_point() or tensor.is_complex()


def is_readable(tensor: Tensor) -> bool:
    """Returns whether a tensor has values that can fail to be finite."""
    return is_float(tensor) and tensor.numel() > 0 and not tensor.is_meta and not isinstance(tensor, FakeTensor)


def largest(tensor: Tensor) -> float:
    """Returns the greatest magnitude of its values; NaN if one is NaN, 0 without values."""
    values = values_of(tensor)
    if not values.numel():
        return 0.0
    if values.is_complex():
        return float(values.abs().amax().item())
    low, high = torch.aminmax(values)
    return max(abs(low.item()), abs(high.item()))


def smallest_normal(dtype: torch.dtype) -> float:
    """Returns the least magnitude that a dtype holds in full precision."""
    return float(torch.finfo(dtype).smallest_normal)


def counts(tensor: Tensor) -> tuple[int, int]:
    """Counts how many of its values are NaN, and how many are Inf."""
    values = values_of(tensor)
    return int(torch.isnan(values).sum()), int(torch.isinf(values).sum())


def infinities(tensor: Tensor) -> tuple[bool, bool]:
    """Returns of a tensor that is not finite whether it holds an Inf, and whether it holds nothing worse than -Inf."""
    values = values_of(tensor)
    if values.is_complex():
        return bool(torch.isinf(values).any()), False
    low, high = values.amin().item(), values.amax().item()  # NaN if one is NaN
    return (True, high < inf) if low == low else (bool(torch.isinf(values).any()), False)


def first_true(mask: Tensor) -> list[int]:
    """Returns the indices of the first true element of a mask that has one."""
    return [int(index) for index in mask.nonzero()[0]]


def element_text(tensor: Tensor, indices: list[int], shape: torch.Size) -> str | None:
    """Returns the element of a tensor behind `indices` of an elementwise result of this shape; None if it has none."""
    if tensor.layout is not torch.strided or len(tensor.shape) > len(shape):
        return None
    try:
        return element(number_text(tensor.expand(shape)[tuple(indices)].item()))
    except RuntimeError:
        return None


def range_text(tensor: Tensor) -> str:
    """Returns 'shape [2, 3] from -1.5 to 4'."""
    values = values_of(tensor)
    shape = f"shape {list(tensor.shape)}"
    if values.is_complex() or not values.numel():
        return shape
    low, high = torch.aminmax(values)
    return Message(shape, " from ", element(number_text(low.item())), " to ", element(number_text(high.item())))


def number_text(value: float | complex | bool) -> str:
    """Returns a number with as many digits as a reader needs."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
