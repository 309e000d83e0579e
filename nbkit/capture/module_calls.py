"""Which module an op runs in: the forward calls of modules while a recording is on."""

from collections.abc import Callable
from sys import _getframe
from threading import get_ident
from typing import Any
from weakref import ref

from torch import nn

from nbkit.capture.api_calls import ApiMode
from nbkit.capture.dispatch import current_node
from nbkit.capture.recording import ModuleCall, Recording
from nbkit.capture.roots import Roots


class CalledModule:
    """A module that ran: where it stands in its root model, and how often it was called."""

    def __init__(self, module: nn.Module, root: int, path: str) -> None:
        self.module: Any = ref(module)
        self.root = root
        self.path = path
        self.calls = 0


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
        self.numbers: dict[tuple[int, int], int] = {}
        self.original: Callable[..., Any] | None = None

    def install(self) -> None:
        if self.original is not None:
            return
        original = self.original = nn.Module.__call__
        recording, api, number_of = self.recording, self.api, self._number
        module_calls, called = recording.module_calls, self.called

        def __call__(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            in_backward = current_node() is not None
            if not in_backward and recording.main.ident != get_ident():
                return original(module, *args, **kwargs)  # a thread of the user's own, which is not recorded
            thread = recording.thread()
            outer, outer_root = thread.module_call, thread.root
            number = number_of(module, thread, _getframe(1))
            thread.module_call = len(module_calls)
            module_calls.append(ModuleCall(number, called[number].calls, in_backward))
            called[number].calls += 1
            change = api.enter_module(module, thread)
            try:
                return original(module, *args, **kwargs)
            finally:
                if change is not None:
                    change()
                thread.module_call, thread.root = outer, outer_root

        nn.Module.__call__ = __call__  # type: ignore[method-assign]

    def remove(self) -> None:
        if self.original is not None:
            nn.Module.__call__ = self.original  # type: ignore[method-assign]
            self.original = None

    def _number(self, module: nn.Module, thread: Any, frame: Any) -> int:
        if thread.module_call < 0:
            thread.root = self.roots.find(module, frame)
        key = (id(module), thread.root)
        number = self.numbers.get(key, -1)
        if number >= 0 and self.called[number].module() is module:
            return number
        path = self.roots.roots[thread.root].path(module)
        if path is None:  # held outside the module tree (a plain list, a closure): a root of its own
            root = self.roots.find(module, frame)
            path = self.roots.roots[root].path(module) or ""
        else:
            root = thread.root
        self.numbers[key] = len(self.called)
        self.called.append(CalledModule(module, root, path))
        return len(self.called) - 1
