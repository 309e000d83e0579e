"""Rebuilds one call of a recorded step with the values it had."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch._ops import OpOverload

from nbkit.capture.calls.encode import decoded, tensor_of
from nbkit.errors import OptionError
from nbkit.numerics.precision import Array
from nbkit.trace.captured_calls import captured_call
from nbkit.trace.captured_values import CapturedResult
from nbkit.trace.trace import Trace


@dataclass(frozen=True)
class OpResult:
    """Holds a compared result: `actual` in its own dtype, `expected` of the reference, in float64 unless exact."""

    role: str
    position: int
    actual: Tensor
    expected: Tensor


@dataclass(frozen=True)
class OpCall:
    """Describes one call: `op(*args, **kwargs)` runs it again on the CPU; `device` is where it ran in the step."""

    op: OpOverload
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    device: str
    results: tuple[OpResult, ...]

    @property
    def actual(self) -> Tensor:
        """Returns what the step computed: the first of the results that were kept."""
        return self.results[0].actual

    @property
    def expected(self) -> Tensor:
        """Returns what the reference computed for it."""
        return self.results[0].expected


def call_of(trace: Trace, op_id: int) -> OpCall:
    """Returns the call with its inputs from before it ran and the results that were kept, all as tensors on the CPU.

    `nbkit.opdiff` keeps the first wrong calls of a step; see its `keep` and `keep_ops`. Raises OptionError if this
    call was not kept, or if its op is not known in this process.
    """
    call = captured_call(trace, op_id)
    tensors = [tensor_of(captured) for captured in call.tensors]
    kwargs = {name: decoded(value, tensors) for name, value in call.kwargs.items()}
    results = tuple(_result(captured) for captured in call.results)
    return OpCall(op_of(call.op), tuple(decoded(list(call.args), tensors)), kwargs, call.device, results)


def op_of(name: str) -> OpOverload:
    """Returns the op of this name. Raises OptionError if torch does not know it here."""
    try:
        namespace, packet, overload = name.split(".")
        op: OpOverload = getattr(getattr(getattr(torch.ops, namespace), packet), overload)
    except (AttributeError, ValueError) as error:
        raise OptionError(f"torch knows no op {name!r} here; import the package that brings it.") from error
    return op


def _result(captured: CapturedResult) -> OpResult:
    actual = _tensor(captured.actual).to(getattr(torch, captured.dtype)).reshape(captured.shape)
    return OpResult(
        captured.role, captured.position, actual, _tensor(captured.expected).reshape(captured.expected_shape)
    )


def _tensor(values: Array) -> Tensor:
    return torch.from_numpy(np.array(values))
