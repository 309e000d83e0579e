"""Replaces a function of torch for a while; patches of several recordings may end in any order."""

from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

BODY = "the body"


class Body:
    """Holds what a function of torch runs. A Patch of `run` replaces that, and the function stays the same object.

    Torch and users compare functions of torch.distributed by identity (P2POp, Dynamo), and import them by name.
    """

    def __init__(self, function: FunctionType) -> None:
        self.function = function
        self.code = function.__code__
        names = function.__globals__, function.__name__, function.__defaults__, function.__closure__
        self.original = FunctionType(self.code, *names)
        self.original.__kwdefaults__ = function.__kwdefaults__
        self.original.__qualname__ = function.__qualname__  # errors of wrong arguments tell it
        self.original.__dict__.update(function.__dict__)  # __wrapped__ has the signature
        self.run: Callable[..., Any] = self.original

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name == "run":
            self.function.__code__ = self.code if value is self.original else self._calls_run()

    def _calls_run(self) -> CodeType:
        """Returns code that calls `run`. A constant leads to it: the code runs with the globals of torch's module."""
        code = _call.__code__
        constants = tuple(self if constant == BODY else constant for constant in code.co_consts)
        return code.replace(co_consts=constants, co_freevars=self.code.co_freevars)  # as many as it has cells


def _call(*args: Any, **kwargs: Any) -> Any:
    body: Any = "the body"  # BODY, the constant
    return body.run(*args, **kwargs)


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
        function, self.function = self.function, None  # `before` stays: a call may be running
        if function is None:
            return
        current = getattr(self.holder, self.name)
        if current is function:
            if self.is_inherited:
                delattr(self.holder, self.name)
            else:
                setattr(self.holder, self.name, self.before)
        while (above := getattr(current, "patch", None)) is not None:
            if above.before is function:
                above.before = self.before
                break
            current = above.before
        del function.patch
