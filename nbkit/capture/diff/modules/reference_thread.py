"""Runs references in a thread of their own, whose modes, autocast, saved-tensor hooks and node numbers are its own."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import get_ident
from typing import Any

import torch

from nbkit.capture.replay.muted_warnings import MutedWarnings


class ReferenceThread:
    """Context manager with a thread in which modules run again with gradients, isolated from the step.

    Autograd numbers its nodes by thread, and a recording tells from these numbers which op made which node. Torch's
    modes, observers and hooks of saved tensors belong to a thread, too. Warnings of the work are muted.
    """

    def __init__(self) -> None:
        self.ident = 0
        self.muted_warnings = MutedWarnings()

    def __enter__(self) -> "ReferenceThread":
        self.muted_warnings.__enter__()
        self.pool = ThreadPoolExecutor(1, "nbkit-reference", self._begin)
        return self

    def __exit__(self, *error: object) -> None:
        self.muted_warnings.__exit__(*error)

    def close(self) -> None:
        """Ends the thread."""
        self.pool.shutdown()

    def _begin(self) -> None:
        self.ident = get_ident()
        torch._C._autograd._enable_record_function(False)
        torch._C._set_grad_enabled(False)

    def run(self, work: Callable[[], Any]) -> Any:
        """Returns the result of `work`, run in the thread; raises what it raises."""
        if get_ident() == self.ident:
            return work()
        return self.pool.submit(self.muted_warnings.run, work).result()
