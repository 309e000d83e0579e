"""Runs torch isolated from the user's step: without its modes, autocast and gradients, its generator left as it is."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from sys import getrecursionlimit, setrecursionlimit
from time import perf_counter_ns
from typing import Any

import torch
from torch._C import _len_torch_dispatch_stack
from torch.utils._python_dispatch import _disable_current_modes

from nbkit.capture.raw.recording import Recording

HEADROOM = 500  # frames; torch's own modes and the reference take some dozens
report = torch._C._autograd._enable_record_function  # to torch's observers, profilers among them
ZERO_TENSOR = torch._C.DispatchKey.ZeroTensor


@contextmanager
def isolated() -> Iterator[None]:
    """Inside, nothing that torch runs is seen by a mode, recorded by autograd, cast by autocast or saved by a hook.

    Zeros without memory, which a second backward pass or forward-mode AD makes, are read as zeros: in the handler of a
    dispatch mode torch (2.13) leaves out the key that sees to it, and their kernels read from address 0.
    """
    before = torch.is_grad_enabled()
    torch._C._set_grad_enabled(False)
    try:
        with ExitStack() as stack:
            stack.enter_context(torch._C.DisableTorchFunction())
            stack.enter_context(torch._C._SetExcludeDispatchKeyGuard(ZERO_TENSOR, False))
            stack.enter_context(_disable_current_modes())
            stack.enter_context(torch.autocast("cpu", enabled=False))
            yield
    finally:
        torch._C._set_grad_enabled(before)


def timed_isolated(recording: Recording, work: Callable[[], Any], on_trouble: Callable[[Exception], object]) -> Any:
    """Runs `work` isolated; its time is not counted as the step's, and an error goes to `on_trouble`."""
    started = perf_counter_ns()
    before = torch.is_grad_enabled()
    limit = getrecursionlimit()
    # A step that calls itself without end is to meet the limit in its own code, not where states are put back. In one
    # that sets the limit itself, and in a second thread, it stays.
    has_headroom = limit == recording.recursion_limit
    if has_headroom:
        setrecursionlimit(limit)  # in the last frame that the limit allows Python refuses it: here, not below
        setrecursionlimit(limit + HEADROOM)
    report(False)
    try:
        if _len_torch_dispatch_stack() or torch.is_autocast_enabled("cpu"):
            with isolated():
                return work()
        # As isolated(), written out: an op takes microseconds.
        torch._C._set_grad_enabled(False)
        with torch._C.DisableTorchFunction(), torch._C._SetExcludeDispatchKeyGuard(ZERO_TENSOR, False):
            return work()
    except Exception as error:
        torch._C._set_grad_enabled(before)
        on_trouble(error)
        return None
    finally:
        torch._C._set_grad_enabled(before)
        report(True)
        if has_headroom and getrecursionlimit() == limit + HEADROOM:
            setrecursionlimit(limit)
        recording.spent.add(started, perf_counter_ns())
