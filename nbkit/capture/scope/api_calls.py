"""Knows the API call that the running ops belong to, for filters that name one, such as `linear`."""

from threading import local
from typing import Any

from nbkit.capture.frames.op_names import op_name
from nbkit.capture.raw.pausable_mode import PausableMode


class ApiCallNames(PausableMode):
    """Holds the name of the outermost API call of each thread while it runs; torch takes the mode off meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self._here = local()

    @property
    def name(self) -> str | None:
        """Returns the name of the API call that runs in this thread; None outside of all, as in a backward pass."""
        return getattr(self._here, "name", None)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        before, self._here.name = self.name, op_name(func)
        try:
            return func(*args, **(kwargs or {}))
        finally:
            self._here.name = before
