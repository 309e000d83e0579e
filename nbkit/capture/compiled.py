"""Regions run by torch.compile: the recorder's Python parts step aside, so that nothing is compiled anew or broken."""

import importlib.util
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from nbkit.capture.api_calls import ApiMode
from nbkit.capture.module_calls import ModuleCalls
from nbkit.capture.recording import Recording

DYNAMO = "torch._dynamo.eval_frame"
SETTER = "_maybe_set_eval_frame"


class CompiledRegions:
    """Watches dynamo switch its frame evaluation on and off while installed.

    A function mode or a changed Module.__call__ would fail dynamo's guards, and the region would be compiled again with
    our code traced into it. Both are taken away whenever a compiled function runs; the dispatch mode stays, which
    torch.compile is told to ignore (see OpMode), so that the ops its code launches are recorded.
    """

    def __init__(self, recording: Recording, api: ApiMode, modules: ModuleCalls) -> None:
        self.recording = recording
        self.api = api
        self.modules = modules
        self.inside = False
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
        self.inside = False

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
            # A callable means that frames are compiled from here on; None and False that they are not. An outer
            # recording's watcher is `setter`: last out, first in, so that patches unwind in order.
            if callable(callback):
                self._enter()
                return setter(callback)
            before = setter(callback)
            self._leave()
            return before

        setattr(module, SETTER, watched)

    def _enter(self) -> None:
        if self.inside:
            return
        self.inside = True
        self.recording.skip("API and module calls inside a torch.compile region (its kernels are recorded)")
        self.modules.remove()
        self.api.pause()

    def _leave(self) -> None:
        if self.inside:
            self.inside = False
            self.api.resume()
            self.modules.install()
