"""Puts ranges around Python's calls of torch, with the line each was made from; only where the user asks for stacks."""

from sys import _getframe
from typing import Any

from torch._C._profiler import _RecordFunctionFast

from nbkit.capture.frames.op_names import op_name
from nbkit.capture.raw.pausable_mode import PausableMode
from nbkit.capture.raw.source import CodeLocation, location_text, user_location
from nbkit.capture.step.function_mode import METHOD_WRAPPER

API_MARK = "nbkit api call "


class ApiRanges(PausableMode):
    """Puts a range around every outermost API call, except properties such as x.shape and the profiler's own calls."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, CodeLocation | None]] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if type(func) is METHOD_WRAPPER or op_name(func).startswith("profiler."):
            return func(*args, **(kwargs or {}))
        number = len(self.calls)
        self.calls.append((func, user_location(_getframe(1))))
        with _RecordFunctionFast(f"{API_MARK}{number}"):
            return func(*args, **(kwargs or {}))

    def described(self, number: int) -> tuple[str, str | None]:
        """Returns name and source line of a call."""
        func, location = self.calls[number]
        return op_name(func), None if location is None else location_text(location)
