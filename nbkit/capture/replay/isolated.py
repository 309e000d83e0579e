"""Runs torch isolated from the user's step: without its modes, autocast and gradients, its generator left as it is."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from sys import getrecursionlimit, setrecursionlimit
from time import perf_counter_ns
from typing import Any

import torch
from torch._C import (
    DisableTorchFunction,
    _len_torch_dispatch_stack,
    _pop_torch_dispatch_stack,
    _push_on_torch_dispatch_stack,
    _SetExcludeDispatchKeyGuard,
)
from torch._ops import _len_torch_dispatch_stack_pre_dispatch as modes_of_export
from torch.utils._python_dispatch import _disable_current_modes

from nbkit.capture.raw.recording import Recording

HEADROOM = 500  # frames; torch's own modes and the reference take some dozens
report = torch._C._autograd._enable_record_function  # to torch's observers, profilers among them
ZERO_TENSOR = torch._C.DispatchKey.ZeroTensor


class isolated:  # noqa: N801 (a context manager)
    """Inside, nothing that torch runs is seen by a mode, recorded by autograd, cast by autocast or saved by a hook.

    Zeros without memory, which a second backward pass or forward-mode AD makes, are read as zeros: in the handler of a
    dispatch mode torch (2.13) leaves out the key that sees to it, and their kernels read from address 0.

    What is put back at the end takes no deeper calls than what put it aside: Python 3.12 has a limit of calls in C that
    nobody can raise, and a step may call itself until it meets it.
    """

    __slots__ = ("guards", "has_gradients", "is_cast", "modes")

    def __enter__(self) -> None:
        self.has_gradients, self.is_cast = torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")
        self.guards: tuple[Any, ...] = (DisableTorchFunction(), _SetExcludeDispatchKeyGuard(ZERO_TENSOR, False))
        self.modes: list[Any] = []
        if _len_torch_dispatch_stack():
            if modes_of_export():
                self.guards = (*self.guards, _disable_current_modes())
            else:
                while _len_torch_dispatch_stack():
                    self.modes.append(_pop_torch_dispatch_stack(None))
        if self.is_cast:
            torch.set_autocast_enabled("cpu", False)
        torch._C._set_grad_enabled(False)
        for guard in self.guards:
            guard.__enter__()

    def __exit__(self, *error: object) -> None:
        for guard in reversed(self.guards):
            guard.__exit__(None, None, None)
        while self.modes:
            _push_on_torch_dispatch_stack(self.modes.pop())
        if self.is_cast:
            torch.set_autocast_enabled("cpu", True)
        torch._C._set_grad_enabled(self.has_gradients)


def timed_isolated(recording: Recording, work: Callable[[], Any], on_trouble: Callable[[Exception], object]) -> Any:
    """Runs `work` isolated; its time is not counted as the step's, and an error goes to `on_trouble`."""
    started = perf_counter_ns()
    limit = getrecursionlimit()
    # A step that calls itself without end is to meet the limit in its own code, not where states are put back. In one
    # that sets the limit itself, and in a second thread, it stays.
    has_headroom = limit == recording.recursion_limit
    if has_headroom:
        setrecursionlimit(limit)  # in the last frame that the limit allows Python refuses it: here, not below
        setrecursionlimit(limit + HEADROOM)
    report(False)
    try:
        with isolated():
            return work()
    except Exception as error:
        on_trouble(error)
        return None
    finally:
        report(True)
        if has_headroom and getrecursionlimit() == limit + HEADROOM:
            setrecursionlimit(limit)
        recording.spent.add(started, perf_counter_ns())


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Lets ops run in so many threads inside."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
