"""Knows the API call that the running ops belong to, for filters that name one, such as `linear`."""

from threading import local
from typing import Any

from torch import Tensor

from nbkit.capture.frames.op_names import op_name
from nbkit.capture.raw.pausable_mode import PausableMode
from nbkit.capture.replay.copies import all_tensors


class ApiCallNames(PausableMode):
    """Holds the name of the outermost API call of each thread while it runs; torch takes the mode off meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self._here = local()

    @property
    def name(self) -> str | None:
        """Returns the name of the API call that runs in this thread; None outside of all, as in a backward pass."""
        return getattr(self._here, "name", None)

    def tensors(self) -> list[Tensor]:
        """Returns the tensors that this API call was given."""
        return all_tensors(*self._given)

    @property
    def _given(self) -> tuple[Any, Any]:
        return getattr(self._here, "given", ((), {}))

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        before = self.name, self._given
        self._here.name, self._here.given = op_name(func), (args, kwargs or {})
        try:
            return func(*args, **(kwargs or {}))
        finally:
            self._here.name, self._here.given = before
