"""Runs torch isolated from the user's step: without its modes, autocast and gradients, its generator left as it is."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from sys import getrecursionlimit, setrecursionlimit
from time import perf_counter_ns
from typing import Any

import torch
from torch._C import _len_torch_dispatch_stack, _pop_torch_dispatch_stack, _push_on_torch_dispatch_stack
from torch._ops import _len_torch_dispatch_stack_pre_dispatch as modes_of_export
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
    """Runs `work` isolated; its time is not counted as the step's, and an error goes to `on_trouble`.

    What is put back at the end takes no deeper calls than what put it aside: Python 3.12 has a limit of calls in C that
    nobody can raise, and a step may call itself until it meets it.
    """
    started = perf_counter_ns()
    before, is_cast = torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")
    limit = getrecursionlimit()
    # A step that calls itself without end is to meet the limit in its own code, not where states are put back. In one
    # that sets the limit itself, and in a second thread, it stays.
    has_headroom = limit == recording.recursion_limit
    if has_headroom:
        setrecursionlimit(limit)  # in the last frame that the limit allows Python refuses it: here, not below
        setrecursionlimit(limit + HEADROOM)
    report(False)
    modes: list[Any] = []
    try:
        if _len_torch_dispatch_stack() and modes_of_export():
            with isolated():
                return work()
        # As isolated(), written out: an op takes microseconds.
        while _len_torch_dispatch_stack():
            modes.append(_pop_torch_dispatch_stack())
        if is_cast:
            torch.set_autocast_enabled("cpu", False)
        torch._C._set_grad_enabled(False)
        with torch._C.DisableTorchFunction(), torch._C._SetExcludeDispatchKeyGuard(ZERO_TENSOR, False):
            return work()
    except Exception as error:
        torch._C._set_grad_enabled(before)
        on_trouble(error)
        return None
    finally:
        while modes:
            _push_on_torch_dispatch_stack(modes.pop())
        if is_cast:
            torch.set_autocast_enabled("cpu", True)
        torch._C._set_grad_enabled(before)
        report(True)
        if has_headroom and getrecursionlimit() == limit + HEADROOM:
            setrecursionlimit(limit)
        recording.spent.add(started, perf_counter_ns())
