"""Steps aside for regions run by torch.compile, so that nothing is compiled anew or broken."""

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib.machinery import ModuleSpec
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any, Protocol

from nbkit.capture.raw.patching import Patch
from nbkit.capture.raw.pausable_mode import PausableMode
from nbkit.compat.torch_versions import hide_from_compile, is_compile_wrapper

REGION = "torch.compile region: API and module calls in it are not recorded, nor the ops that its fused kernels replace"
PACKAGE, DYNAMO = "torch._dynamo", "torch._dynamo.eval_frame"
CALLBACKS = "torch._dynamo.callback"
SETTER = "_maybe_set_eval_frame"
OUR_PACKAGE = "nbkit."
# Modules that use one of them put something around functions that run code of the step, which is compiled as ever.
WRAPPERS = {"Patch", "PausableMode"}


class Skipping(Protocol):
    """Counts what a recording leaves out."""

    def skip(self, reason: str) -> None: ...


class Installed(Protocol):
    """Takes a part of a recorder out of torch and puts it back."""

    def install(self) -> None: ...

    def remove(self) -> None: ...


class Pausable(Protocol):
    """Looks away between pause() and resume()."""

    def pause(self) -> None: ...

    def resume(self) -> None: ...


class CompiledRegions:
    """Watches torch.compile's wrapper switch frame evaluation on and off while installed.

    A function mode, a changed Module.__call__ or a hook of optimizers would fail dynamo's guards, and the region would
    be compiled again with our code traced into it. They are taken away whenever a compiled function runs; the dispatch
    mode stays, which torch.compile is told to ignore (see StepMode), so that the ops its code launches are recorded.
    """

    def __init__(
        self,
        recording: Skipping,
        api: PausableMode,
        modules: Installed,
        optimizers: Pausable | None = None,
        on_compile: Callable[[bool], None] = lambda begins: None,
    ) -> None:
        self.recording = recording
        self.api = api
        self.modules = modules
        self.optimizers = optimizers
        self.on_compile = on_compile
        self.wrappers: list[FrameType] = []  # running wrappers of compiled functions, outermost first
        self.patch: Patch | None = None

    def install(self) -> None:
        if DYNAMO in sys.modules:
            self._watch(sys.modules[DYNAMO])
        else:
            sys.meta_path.insert(0, self)  # dynamo is imported by the first use of torch.compile

    def remove(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        if self.patch is not None:
            self.patch.remove()
            self.patch = None
            callbacks = sys.modules[CALLBACKS].callback_handler
            for listed in (callbacks.start_callbacks, callbacks.end_callbacks):  # torch._dynamo.reset() empties them
                listed[:] = [
                    callback for callback in listed if callback not in (self._begin_compile, self._end_compile)
                ]
        self.wrappers.clear()

    def _begin_compile(self, *_: Any) -> None:
        self.on_compile(True)

    def _end_compile(self, *_: Any) -> None:
        self.on_compile(False)

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        """Lets the real finder find dynamo, as an import hook, and watches it once it has run.

        It notes nn.Module.__call__ when it is imported, and must not note ours.
        """
        if name != PACKAGE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            loader = spec.loader
            run = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                loader.exec_module = run  # type: ignore[method-assign]  # the loader stays, the recording must not
                self.modules.remove()
                try:
                    run(module)
                finally:
                    self.modules.install()
                if DYNAMO in sys.modules:
                    self._watch(sys.modules[DYNAMO])

            loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec

    def _watch(self, module: ModuleType) -> None:
        if not hasattr(module, SETTER):
            return
        for name in [name for name in sys.modules if name.startswith(OUR_PACKAGE)]:
            _hide_module(name)
        patch = self.patch = Patch(module, SETTER)
        callbacks = importlib.import_module(CALLBACKS).callback_handler
        callbacks.register_start_callback(self._begin_compile)
        callbacks.register_end_callback(self._end_compile)

        def watched(callback: Any) -> Any:
            # The wrapper calls this before and after the compiled code; what is disabled inside calls it too, but is
            # part of the region (much of it is the compiler itself). Between here and the wrapper may stand the
            # watchers of recordings that began later.
            frame: FrameType | None = sys._getframe(1)
            here = sys._getframe().f_code
            while frame is not None and frame.f_code is here:
                frame = frame.f_back
            if frame is None or not is_compile_wrapper(frame.f_code):
                return patch.before(callback)
            if callable(callback):
                self._enter(frame)
                return patch.before(callback)
            before = patch.before(callback)
            self._leave(frame)
            return before

        patch.install(watched)

    def _enter(self, wrapper: FrameType) -> None:
        self.wrappers.append(wrapper)
        if len(self.wrappers) == 1:
            self.recording.skip(REGION)
            self.modules.remove()
            self.api.pause()
            if self.optimizers is not None:
                self.optimizers.pause()

    def _leave(self, wrapper: FrameType) -> None:
        if wrapper in self.wrappers:
            del self.wrappers[self.wrappers.index(wrapper) :]
            if not self.wrappers:
                if self.optimizers is not None:
                    self.optimizers.resume()
                self.api.resume()
                self.modules.install()


@cache
def _hide_module(name: str) -> None:
    """Hides our code from torch.compile, which would trace it wherever it runs in a region, as behind a graph break.

    What code that only looks at the step calls is no part of the step, and is not compiled either.
    """
    module = vars(sys.modules[name])
    only_looks = name.startswith(f"{OUR_PACKAGE}capture.") and not WRAPPERS & module.keys()
    for code in _codes(module):
        hide_from_compile(code, with_callees=only_looks)


def _codes(module: dict[str, Any]) -> Iterator[CodeType]:
    """Yields the code of all functions of a module, of its classes and inside other functions too."""
    pending = [value for value in module.values() if getattr(value, "__module__", None) == module["__name__"]]
    while pending:
        value = pending.pop()
        if isinstance(value, CodeType):
            yield value
            pending += [constant for constant in value.co_consts if isinstance(constant, CodeType)]
        elif isinstance(value, type):
            pending += vars(value).values()
        # What a decorator of another package puts around ours is not our code.
        elif isinstance(value, FunctionType) and value.__globals__ is module:
            pending.append(value.__code__)
        else:
            pending += filter(None, (getattr(value, name, None) for name in ("__wrapped__", "fget", "func")))
