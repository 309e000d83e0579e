"""Which module an op runs in: the forward calls of modules while a recording is on."""

from sys import _getframe
from threading import get_ident
from types import FrameType
from typing import Any
from weakref import ref

from torch import nn

from nbkit.capture.api_calls import FUSED_INFERENCE, ApiMode
from nbkit.capture.dispatch import current_node
from nbkit.capture.patching import Patch
from nbkit.capture.recording import Recording, ThreadState
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


class ModuleCalls:
    """Puts every module's forward call on the recording while installed.

    `nn.Module.__call__` is replaced for that time, as torch.fx does it: global hooks make torch.compile warn, turn off
    fast paths and are not run for every kind of exception.
    """

    def __init__(self, recording: Recording, api: ApiMode) -> None:
        self.recording = recording
        self.api = api
        self.roots = Roots()
        self.called: list[CalledModule] = []
        self.by_place: dict[tuple[int, int], CalledModule] = {}
        self.patch = Patch(nn.Module, "__call__")

    def install(self) -> None:
        if self.patch.function is not None:
            return
        patch = self.patch
        recording, main, api, find, by_place = self.recording, self.recording.main, self.api, self._find, self.by_place
        module_calls = recording.module_calls

        def __call__(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            node = current_node()
            if node is None and main.ident != get_ident():
                return patch.before(module, *args, **kwargs)  # a thread of the user's own, which is not recorded
            thread = main if node is None else recording.thread()
            outer, outer_root, context = thread.module_call, thread.root, thread.context
            called = by_place.get((id(module), outer_root)) if outer >= 0 else None
            if called is None or called.module() is not module:
                called = find(module, thread, _getframe(1))
            thread.module_call = len(module_calls)
            module_calls.append((called.number, called.calls, node is not None))
            called.calls += 1
            recording.place(thread)
            change = api.enter_module(module, called.may_fuse, thread)
            try:
                return patch.before(module, *args, **kwargs)
            finally:
                if change is not None:
                    change()
                thread.module_call, thread.root, thread.context = outer, outer_root, context

        patch.install(__call__)

    def remove(self) -> None:
        self.patch.remove()

    def _find(self, module: nn.Module, thread: ThreadState, frame: FrameType) -> CalledModule:
        """The entry of a module met for the first time in this root, or called from outside any module."""
        if thread.module_call < 0:
            thread.root = self.roots.find(module, frame)
        key = (id(module), thread.root)
        called = self.by_place.get(key)
        if called is not None and called.module() is module:
            return called
        root = thread.root
        path = self.roots.roots[root].path(module)
        if path is None:  # held outside the module tree (a plain list, a closure): a root of its own
            root = self.roots.find(module, frame)
            path = self.roots.roots[root].path(module) or ""
        called = self.by_place[key] = CalledModule(module, len(self.called), root, path)
        self.called.append(called)
        return called
