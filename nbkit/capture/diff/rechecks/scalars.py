"""Numbers that are no tensors, such as bounds and momenta: a kernel holds them in fewer bits than the reference.

A comparison with 0.1 in float32 is one with 0.100000001, which is what an element clamped to 0.1 is equal to; a running
statistic is kept by 1 - momentum, whose error is that of the momentum and not of the difference.
"""

from collections.abc import Set
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nbkit.capture.replay.reference import DOUBLES, Call
from nbkit.numerics.precision import Array


def with_rounded_scalars(call: Call, index: int, dtypes: Set[torch.dtype]) -> list[Tensor]:
    """The result at a place with all numbers rounded to float32, and to each of these dtypes; of float64 none."""
    if call.reference.function is not None or any(dtype in DOUBLES for dtype in call.dtypes):
        return []
    args, kwargs = call.widened()
    results = []
    for dtype in sorted({torch.float32, *(one for one in dtypes if one.is_floating_point)}, key=str):
        changed = _rounded(args, dtype), {name: _rounded(value, dtype) for name, value in kwargs.items()}
        if not _are_same(changed, (args, kwargs)):
            results.append(call.once(*changed).all[index])
    return results


def noise_of_scalars(call: Call, index: int, expected: Array) -> Array | float:
    """What rounding the numbers of a call to float32, in which kernels compute, changes in its result at a place."""
    changes = [abs(one.reshape(-1).numpy() - expected) for one in with_rounded_scalars(call, index, set())]
    return np.nan_to_num(np.max(changes, axis=0), nan=0.0, posinf=0.0) if changes else 0.0


def _rounded(value: Any, dtype: torch.dtype) -> Any:
    if isinstance(value, float):
        return torch.tensor(value, dtype=torch.float64).to(dtype).item()
    return type(value)(_rounded(one, dtype) for one in value) if isinstance(value, list | tuple) else value


def _are_same(left: Any, right: Any) -> bool:
    if isinstance(left, list | tuple):
        return all(_are_same(*pair) for pair in zip(left, right, strict=True))
    if isinstance(left, dict):
        return all(_are_same(one, right[name]) for name, one in left.items())
    return left is right or (isinstance(left, float) and left == right)
