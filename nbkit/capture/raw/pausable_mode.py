"""Defines a torch function mode that can step aside for a while."""

from collections.abc import Callable
from types import MethodType
from typing import Any

from torch._C import (
    _get_function_stack_at,
    _len_torch_function_stack,
    _pop_torch_function_stack,
    _push_on_torch_function_stack,
)
from torch.overrides import TorchFunctionMode


class PausableMode(TorchFunctionMode):
    """Serves as base of the recorders of API calls; on while entered, except between pause() and resume()."""

    def __init__(self) -> None:
        self.pauses: list[Callable[[], object]] = []  # what ends each

    def __enter__(self) -> "PausableMode":
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def is_on(self) -> bool:
        """Returns whether the running thread's stack of function modes holds this one."""
        return any(_get_function_stack_at(index) is self for index in range(_len_torch_function_stack()))

    def pause(self) -> None:
        """Takes the mode off for a while; below another mode it stays and passes calls on instead. Pauses nest."""
        if self._pop():
            self.pauses.append(self._push)
            return
        handler = self.__torch_function__
        self.__torch_function__ = MethodType(_pass_on, self)  # type: ignore[method-assign]
        self.pauses.append(lambda: setattr(self, "__torch_function__", handler))

    def resume(self) -> None:
        """Ends the last pause."""
        if self.pauses:
            self.pauses.pop()()

    def __exit__(self, *error: object) -> None:
        self.pauses.clear()
        above = []
        # Whatever stands above by now was left there by others: it goes back on.
        while self.is_on() and (mode := _pop_torch_function_stack()) is not self:
            above.append(mode)
        for mode in reversed(above):
            _push_on_torch_function_stack(mode)

    def _push(self) -> None:
        _push_on_torch_function_stack(self)

    def _pop(self) -> bool:
        depth = _len_torch_function_stack()
        if not depth or _get_function_stack_at(depth - 1) is not self:
            return False
        _pop_torch_function_stack()
        return True


def _pass_on(_: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    return func(*args, **(kwargs or {}))
