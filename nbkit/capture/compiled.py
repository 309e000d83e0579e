"""Regions run by torch.compile: the recorder's Python parts step aside, so that nothing is compiled anew or broken."""

import importlib.util
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import FrameType, ModuleType
from typing import Any

from nbkit.capture.api_calls import ApiMode
from nbkit.capture.module_calls import ModuleCalls
from nbkit.capture.recording import Recording

DYNAMO = "torch._dynamo.eval_frame"
SETTER, WRAPPER = "_maybe_set_eval_frame", "compile_wrapper"


class CompiledRegions:
    """Watches torch.compile's wrapper switch frame evaluation on and off while installed.

    A function mode or a changed Module.__call__ would fail dynamo's guards, and the region would be compiled again with
    our code traced into it. Both are taken away whenever a compiled function runs; the dispatch mode stays, which
    torch.compile is told to ignore (see OpMode), so that the ops its code launches are recorded.
    """

    def __init__(self, recording: Recording, api: ApiMode, modules: ModuleCalls) -> None:
        self.recording = recording
        self.api = api
        self.modules = modules
        self.wrappers: list[FrameType] = []  # running wrappers of compiled functions, outermost first
        self.original: Callable[[Any], Any] | None = None

    def install(self) -> None:
        if DYNAMO in sys.modules:
            self._watch(sys.modules[DYNAMO])
        else:
            sys.meta_path.insert(0, self)  # dynamo is imported by the first use of torch.compile

    def remove(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        if self.original is not None:
            setattr(sys.modules[DYNAMO], SETTER, self.original)
            self.original = None
        self.wrappers.clear()

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        """Import hook: let the real finder find dynamo's module, and watch it once it has run."""
        if name != DYNAMO:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                run(module)
                self._watch(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec

    def _watch(self, module: ModuleType) -> None:
        setter = getattr(module, SETTER, None)
        if setter is None:
            return
        self.original = setter

        def watched(callback: Any) -> Any:
            # The wrapper calls this before and after the compiled code; what is disabled inside calls it too, but is
            # part of the region (much of it is the compiler itself). An outer recording's watcher is `setter`: last
            # out, first in, so that patches unwind in order.
            frame = sys._getframe(1)
            if frame.f_code.co_name != WRAPPER:
                return setter(callback)
            if callable(callback):
                self._enter(frame)
                return setter(callback)
            before = setter(callback)
            self._leave(frame)
            return before

        setattr(module, SETTER, watched)

    def _enter(self, wrapper: FrameType) -> None:
        self.wrappers.append(wrapper)
        if len(self.wrappers) == 1:
            self.recording.skip("torch.compile region: its kernels are recorded, not the API and module calls in it")
            self.modules.remove()
            self.api.pause()

    def _leave(self, wrapper: FrameType) -> None:
        if wrapper in self.wrappers:
            del self.wrappers[self.wrappers.index(wrapper) :]
            if not self.wrappers:
                self.api.resume()
                self.modules.install()
