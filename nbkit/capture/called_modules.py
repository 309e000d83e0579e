"""The modules that a recording has seen run, and the root models they belong to."""

from types import FrameType
from typing import Any, Protocol
from weakref import ref

from torch import nn

from nbkit.capture.api_calls import FUSED_INFERENCE
from nbkit.capture.roots import Roots


class CalledModule:
    """A module that ran: where it stands in its root model, and how often it was called."""

    def __init__(self, module: nn.Module, number: int, root: int, path: str) -> None:
        self.module: Any = ref(module)
        self.number = number
        self.root = root
        self.path = path
        self.calls = 0
        self.may_fuse = isinstance(module, FUSED_INFERENCE)


class Caller(Protocol):
    """Where a thread stands: the root model it is in; the outermost call of a module sets it."""

    root: int


class CalledModules:
    """The modules met so far; `by_place` finds one by (id, root) without a question asked."""

    def __init__(self) -> None:
        self.roots = Roots()
        self.called: list[CalledModule] = []
        self.by_place: dict[tuple[int, int], CalledModule] = {}

    def find(self, module: nn.Module, caller: Caller, is_outermost: bool, frame: FrameType) -> CalledModule:
        """The entry of a module met for the first time in this root, or called from outside any module."""
        if is_outermost:
            caller.root = self.roots.find(module, frame)
        root = caller.root
        called = self.by_place.get((id(module), root))
        if called is not None and called.module() is module:
            return called
        path = self.roots.roots[root].path(module)
        if path is None:  # held outside the module tree (a plain list, a closure): a root of its own
            root = self.roots.find(module, frame)
            path = self.roots.roots[root].path(module) or ""
        called = self.by_place[id(module), caller.root] = CalledModule(module, len(self.called), root, path)
        self.called.append(called)
        return called
