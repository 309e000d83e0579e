"""Puts ranges on the profiler's timeline: the recorded code itself, forward calls of modules, backward passes."""

from collections import Counter
from collections.abc import Callable
from sys import _getframe
from threading import get_ident
from types import FrameType
from typing import Any
from weakref import ref

import torch
from torch import nn
from torch._C import DisableTorchFunction
from torch._C._profiler import _RecordFunctionFast

from nbkit.capture.profiler.api_ranges import ApiRanges
from nbkit.capture.raw.patching import Patch
from nbkit.capture.raw.recording import current_node
from nbkit.capture.step.called_modules import CalledModule, CalledModules, not_described
from nbkit.capture.step.other_threads import OtherThreads

MODULE_MARK = "nbkit mod "  # short: std::string keeps up to 15 characters without an allocation
ROOT_MARK = "nbkit step"


class ModuleRange:
    """Names the ranges of one module in one root model, and keeps what the name stands for."""

    def __init__(self, called: CalledModule) -> None:
        self.called = called
        self.type = type(called.module()).__name__
        self.name = f"{MODULE_MARK}{called.number}"
        self.module: Any = None  # the reference that takes it out of `met`


class ThreadPosition:
    """Says how many modules deep one thread is, and in which root model."""

    def __init__(self) -> None:
        self.depth = 0
        self.root = -1


class Ranges:
    """Marks the timeline while installed. The range of a module's call bears the number of the module.

    Python code between two ops makes the op after it slower, since it displaces what that needs from the caches, and
    its time would not be the bare step's. So a module met again inside its root passes through few lines, and its calls
    are numbered when the step is over, in the order of their ranges.
    """

    def __init__(self, api: ApiRanges) -> None:
        self.api = api
        self.modules = CalledModules()
        self.module_ranges: dict[int, ModuleRange] = {}  # by the number of the module
        self.met: dict[int, dict[int, ModuleRange]] = {}  # by root and id: modules met inside it
        self.main = get_ident()
        self.other_threads = OtherThreads()
        self.skipped: Counter[str] = Counter()
        self.positions: dict[int, ThreadPosition] = {}
        self.module_patch = Patch(nn.Module, "__call__")
        self.backward_patches = [Patch(torch.autograd, name) for name in ("backward", "grad")]

    def install(self) -> None:
        self.module_patch.install(self._module_call())
        for patch in self.backward_patches:
            patch.install(_in_range(patch, f"torch.autograd.{patch.name}"))

    def remove(self) -> None:
        for patch in (self.module_patch, *self.backward_patches):
            patch.remove()

    def _module_call(self) -> Callable[..., Any]:
        """Returns what stands for nn.Module.__call__; a closure, since it runs before every module."""
        patch, main = self.module_patch, self.main
        nothing: dict[int, ModuleRange] = {}
        met = nothing  # of the root that the main thread is in

        def __call__(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            module_range = met.get(id(module))
            if module_range is None or get_ident() != main:
                return slow_call(module, args, kwargs, _getframe(1))
            module_range.called.calls += 1
            with _RecordFunctionFast(module_range.name):
                return patch.before(module, *args, **kwargs)

        def slow_call(module: nn.Module, args: Any, kwargs: Any, frame: FrameType) -> Any:
            """Runs a call in another thread, of a root model, or of a module that is met for the first time there."""
            nonlocal met
            ident = get_ident()
            if ident != main and current_node() is None:
                self.other_threads.note_call()
                return patch.before(module, *args, **kwargs)
            position = self.positions.setdefault(ident, ThreadPosition())
            outer_root, outer_met = position.root, met
            try:
                with DisableTorchFunction():  # its questions about parameters are not the step's
                    module_range = self._find(module, position, frame)
            except Exception as error:  # of a module that cannot be asked: what it does when it runs is the step's
                self.skipped[not_described(module, error)] += 1
                return patch.before(module, *args, **kwargs)
            finally:
                del frame
            if ident == main:
                met = self.met.setdefault(position.root, {})
            position.depth += 1
            try:
                return self._run(module, module_range, args, kwargs)
            finally:
                position.depth -= 1
                position.root = outer_root
                if ident == main:
                    met = outer_met

        return __call__

    def _find(self, module: nn.Module, position: ThreadPosition, frame: FrameType) -> ModuleRange:
        known = len(self.modules.called)
        called = self.modules.find(module, position, not position.depth, frame)
        for new in self.modules.called[known:]:
            self._mark(new, position.root)
        return self.module_ranges[called.number]

    def _mark(self, called: CalledModule, root: int) -> None:
        module_range = self.module_ranges[called.number] = ModuleRange(called)
        module = called.module()
        if not called.may_fuse:
            met, key = self.met.setdefault(root, {}), id(module)
            module_range.module = ref(module, lambda _: met.pop(key, None))  # a later module may have its id
            met[key] = module_range

    def _run(self, module: nn.Module, module_range: ModuleRange, args: Any, kwargs: Any) -> Any:
        """Runs the call in its range; what may take torch's fused path does so without our function mode."""
        module_range.called.calls += 1
        may_fuse = module_range.called.may_fuse and not module.training
        if may_fuse:
            self.api.pause()
        try:
            with _RecordFunctionFast(module_range.name):
                return self.module_patch.before(module, *args, **kwargs)
        finally:
            if may_fuse:
                self.api.resume()


def _in_range(patch: Patch, name: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        with _RecordFunctionFast(name):
            return patch.before(*args, **kwargs)

    return call
