"""Mutes the warnings of ops that nbkit runs again, so that the step shows the warnings of the bare step."""

import warnings
from collections.abc import Callable
from threading import get_ident
from typing import Any

import torch

from nbkit.capture.raw.patching import Patch

# torch keeps the warnings of C++ code until the outermost of its C functions returns, which is that of the step. Within
# this one, which only calls what it is given, they come out at its own end.
_within_torch: Callable[..., Any] = torch._C._disabled_torch_function_impl


class MutedWarnings:
    """Context manager that drops the warnings of work of ours, in the thread that does it.

    The filters stay as they are: changing them makes Python show again what it has shown once.
    """

    def __init__(self) -> None:
        self.thread = 0  # ident of the thread that is busy with work of ours, else 0
        self.patch = Patch(warnings, "_showwarnmsg")

    def __enter__(self) -> "MutedWarnings":
        if not hasattr(warnings, "_showwarnmsg"):  # a Python that shows warnings by another function
            return self
        patch = self.patch

        def _showwarnmsg(message: Any) -> None:
            if self.thread != get_ident():
                patch.before(message)

        patch.install(_showwarnmsg)
        return self

    def __exit__(self, *error: object) -> None:
        self.patch.remove()

    def run(self, work: Callable[[], Any]) -> Any:
        """The result of `work`."""
        results: list[Any] = []
        self.thread = get_ident()
        try:
            _within_torch(lambda: results.append(work()), (), ())
        except Warning:
            if not results:
                raise
            # A filter makes errors of warnings, after the work was done: the step gets its own.
        finally:
            self.thread = 0
        return results[0]
