"""Keeps the modules of the root models that a recording has seen run."""

from inspect import unwrap
from types import FrameType
from typing import Any, Protocol
from weakref import ref

from torch import nn

from nbkit.capture.raw.source import code_of_line, line_text
from nbkit.capture.step.function_mode import FUSED_INFERENCE
from nbkit.capture.step.root_modules import RootModules


class CalledModule:
    """Describes a module: where it stands in its root model, and how often it was called."""

    def __init__(self, module: nn.Module, number: int, root: int, path: str) -> None:
        self.module: Any = ref(module)
        self.number = number
        self.root = root
        self.path = path
        self.calls = 0
        self.may_fuse = isinstance(module, FUSED_INFERENCE)


def not_described(module: nn.Module, error: Exception) -> str:
    """Returns why the calls of a module are not recorded: it fails where it is asked for its modules or parameters."""
    return f"module calls not described: {type(module).__name__} ({type(error).__name__})"


class Caller(Protocol):
    """Holds where a thread stands: the root model it is in; the outermost call of a module sets it."""

    root: int


class CalledModules:
    """Keeps the modules met so far; `by_module` finds one by (id, root) without a query.

    All modules of a root are met before its first call: asked one by one, between the ops of the step, each would cost
    as much as several ops.
    """

    def __init__(self) -> None:
        self.roots = RootModules()
        self.called: list[CalledModule] = []
        self.by_module: dict[tuple[int, int], CalledModule] = {}

    def find(self, module: nn.Module, caller: Caller, is_outermost: bool, frame: FrameType) -> CalledModule:
        """Returns the entry of a module met for the first time in this root, or called from outside any module."""
        if is_outermost:
            before = len(self.roots.roots)
            caller.root = self.roots.find(module, frame)
            if len(self.roots.roots) > before:
                self._meet_all(caller.root)
        root = caller.root
        called = self.by_module.get((id(module), root))
        if called is not None and called.module() is module:
            return called
        path = self._path(module, root)
        if path is None:  # held outside the module tree (a plain list, a closure): a root of its own
            root = self.roots.find(module, frame)
            path = self.roots.roots[root].path(module) or ""
        return self._meet(module, caller.root, root, path)

    def _path(self, module: nn.Module, number: int) -> str | None:
        """Returns the path of a module in a root. A new one may have been put around others, which move with it."""
        root = self.roots.roots[number]
        scans = root.scans
        path = root.path(module)
        if root.scans > scans:
            for called in self.called:
                if called.root == number and not called.calls:
                    called.path = root.paths.get(id(called.module()), called.path)
        return path

    def _meet_all(self, root: int) -> None:
        model = self.roots.roots[root].module()
        for path, module in model.named_modules():
            self._meet(module, root, root, path)

    def _meet(self, module: nn.Module, inside: int, root: int, path: str) -> CalledModule:
        called = self.by_module[id(module), inside] = CalledModule(module, len(self.called), root, path)
        self.called.append(called)
        return called

    def forwards(self) -> dict[tuple[str, str], tuple[str, str | None]]:
        """Returns where the forward() of each called module stands, and its first line, by model and path."""
        labels, found = self.roots.labels(), {}
        for called in self.called:
            forward: Any = getattr(called.module(), "forward", None)
            code = getattr(unwrap(forward), "__code__", None)
            if called.calls and code is not None:
                at = code.co_filename, code.co_firstlineno
                found[labels[called.root], called.path] = line_text(*at), code_of_line(*at)
        return found
