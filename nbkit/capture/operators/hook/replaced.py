"""Replaces a function wherever loaded modules hold it, and puts back exactly what was there."""

import sys
from collections.abc import Callable
from functools import update_wrapper
from types import ModuleType
from typing import Any

from nbkit.capture.operators.hook.targets import Target

MARK = "_nbkit_replaced"


class Replaced:
    """Replaces one function from install() to remove(); several may stand above each other and end in any order.

    `around` gets the function that was there and the arguments of a call. What holds the function otherwise than as an
    attribute of a module or of its class, such as a list, keeps it.
    """

    def __init__(self, target: Target, around: Callable[[Callable[..., Any], Any, Any], Any]) -> None:
        self.target, self.around = target, around
        self.places: list[tuple[Any, str, Any]] = []  # holder, attribute, what its dict held; MARK if nothing
        self.ended = False

    def install(self) -> None:
        """Puts the replacement in place of what is there now, perhaps another one's."""
        holder, attribute = self.target.holder, self.target.attribute
        held = vars(holder).get(attribute, MARK)
        now = getattr(holder, attribute)
        replacement = self._replacement(_raw(holder, attribute), now)
        self._put(holder, attribute, held, replacement)
        if isinstance(holder, ModuleType):  # `from package import function` has made other names for it
            for module in [*sys.modules.values()]:
                names = vars(module) if isinstance(module, ModuleType) and module is not holder else {}
                for name in [name for name, value in names.items() if value is now]:
                    self._put(module, name, now, replacement)

    def _put(self, holder: Any, attribute: str, held: Any, replacement: Any) -> None:
        setattr(holder, attribute, replacement)
        self.places.append((holder, attribute, held))

    def _replacement(self, raw: Any, now: Any) -> Any:
        """Returns what binds as the function does, from the function as its class holds it and as it is read."""
        binds = type(raw) if isinstance(raw, classmethod | staticmethod) else None
        function = raw.__func__ if binds else raw
        if binds is None and getattr(now, "__self__", None) is self.target.holder:  # a class method in C
            function, binds = now, staticmethod

        def call(*args: Any, **kwargs: Any) -> Any:
            if self.ended:
                return function(*args, **kwargs)
            return self.around(function, args, kwargs)

        update_wrapper(call, function)
        setattr(call, MARK, self)
        return call if binds is None else binds(call)

    def remove(self) -> None:
        """Puts back what was there; below a later replacement this one stays, does nothing, and goes with that one."""
        self.ended = True
        for holder, attribute, held in reversed(self.places):
            if _replaced_in(vars(holder).get(attribute)) is not self:
                continue
            while (below := _replaced_in(held)) is not None and below.ended:
                held = next((one for where, name, one in below.places if (where, name) == (holder, attribute)), held)
            if held is MARK:
                delattr(holder, attribute)
            else:
                setattr(holder, attribute, held)


def _replaced_in(held: Any) -> "Replaced | None":
    return getattr(getattr(held, "__func__", held), MARK, None)


def _raw(holder: Any, attribute: str) -> Any:
    """Returns what a module or class, or one that it inherits from, holds under a name."""
    places = holder.__mro__ if isinstance(holder, type) else (holder,)
    return next((vars(one)[attribute] for one in places if attribute in vars(one)), getattr(holder, attribute))
