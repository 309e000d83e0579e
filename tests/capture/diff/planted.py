"""Planted faults: a dispatch mode around the recording changes what one call of an op gives."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import nbkit
from nbkit import Trace
from tests.capture.models import Step

Change = Callable[[Any, Any, Any], Any]


class Planted(TorchDispatchMode):
    """Runs ops as they are, but `change(func, args, out)` has the last word on call number `call` of one op."""

    def __init__(self, op: str, change: Change, call: int = 0) -> None:
        super().__init__()
        self.op, self.change, self.call, self.seen = op, change, call, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if str(func) != self.op:
            return out
        self.seen += 1
        return self.change(func, args, out) if self.seen == self.call + 1 else out


def compared(step: Step, **options: Any) -> Trace:
    """The trace of one run of `step` under opdiff."""
    with nbkit.opdiff(**options) as trace:
        step()
    return trace


def with_fault(step: Step, op: str, change: Change, call: int = 0, **options: Any) -> Trace:
    """The same with a planted fault, which must have been reached."""
    with Planted(op, change, call) as fault:
        trace = compared(step, **options)
    assert fault.seen > call
    return trace


def scaled(func: Any, args: Any, out: Any) -> Any:
    """The first floating-point result a ten-thousandth too large, in place so that aliases see it."""
    first = next(one for one in ([out] if isinstance(out, Tensor) else out) if isinstance(one, Tensor))
    with torch.no_grad():
        first.mul_(1 + 1e-4)
    return out


def wrong(trace: Trace) -> Any:
    """The rows that are not ok."""
    return trace.diffs[~trace.diffs["status"].isin(["ok", "skipped"])]


def only(trace: Trace) -> Any:
    """The one row of a trace that compared one tensor."""
    assert len(trace.diffs) == 1
    return trace.diffs.iloc[0]
