"""Replaces a function of torch for a while; patches of several recordings may end in any order."""

from collections.abc import Callable
from typing import Any


class Patch:
    """Replaces the function `name` of `holder` from install() to remove().

    The replacement calls `before` of this patch, read at every call: where an earlier patch ends first, as recordings
    in two threads may, it takes itself out of the chain below.
    """

    def __init__(self, holder: Any, name: str) -> None:
        self.holder = holder
        self.name = name
        self.function: Any = None
        self.before: Any = None
        self.is_inherited = False

    def install(self, function: Callable[..., Any]) -> None:
        self.is_inherited = self.name not in vars(self.holder)
        self.before = getattr(self.holder, self.name)
        self.function = function
        function.patch = self  # type: ignore[attr-defined]
        setattr(self.holder, self.name, function)

    def remove(self) -> None:
        """Puts back what was there, or takes the patch out from below a later one; nothing if it is not installed."""
        current = getattr(self.holder, self.name)
        if current is self.function:
            if self.is_inherited:
                delattr(self.holder, self.name)
            else:
                setattr(self.holder, self.name, self.before)
        while (above := getattr(current, "patch", None)) is not None and self.function is not None:
            if above.before is self.function:
                above.before = self.before
                break
            current = above.before
        if self.function is not None:
            del self.function.patch
            self.function = None  # `before` stays: a call may be running
