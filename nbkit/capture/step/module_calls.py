"""Records which module an op runs in: the forward calls of modules while a recording is on."""

from collections.abc import Callable
from sys import _getframe
from threading import get_ident
from typing import Any

from torch import nn

from nbkit.capture.raw.patching import Patch
from nbkit.capture.raw.recording import Recording, current_node
from nbkit.capture.step.called_modules import CalledModule, CalledModules, not_described
from nbkit.capture.step.function_mode import ApiMode
from nbkit.capture.step.other_threads import OtherThreads
from nbkit.errors import NbkitError


class ModuleRunner:
    """Runs the calls of modules as they are; what looks at each of them as a whole takes its place."""

    def passing(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Returns `call`, what records a module's call, with what it does not record left out."""
        return call

    def call(self, called: CalledModule, module: nn.Module, args: Any, kwargs: Any, run: Callable[..., Any]) -> Any:
        """Returns what `run(module, *args, **kwargs)` returns."""
        return run(module, *args, **kwargs)


class ModuleCalls(CalledModules):
    """Puts every module's forward call on the recording while installed.

    `nn.Module.__call__` is replaced for that time, as torch.fx does it: global hooks make torch.compile warn, turn off
    fast paths and are not run for every kind of exception.
    """

    def __init__(self, recording: Recording, api: ApiMode, in_all_threads: bool = False) -> None:
        super().__init__()
        self.in_all_threads = in_all_threads
        self.recording = recording
        self.api = api
        self.other_threads = OtherThreads()
        self.patch = Patch(nn.Module, "__call__")
        # Runs each call; set before install().
        self.around = ModuleRunner()

    def install(self) -> None:
        if self.patch.function is not None:
            return
        patch = self.patch
        recording, main, api, find, by_module = self.recording, self.recording.main, self.api, self.find, self.by_module
        module_calls, other_threads, lock = recording.module_calls, self.other_threads, recording.lock
        in_all_threads, around = self.in_all_threads, self.around

        def __call__(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            node = current_node()
            if node is None and not in_all_threads and main.ident != get_ident():
                other_threads.note_call()
                return patch.before(module, *args, **kwargs)
            thread = main if node is None and not in_all_threads else recording.thread()
            outer, outer_root, context = thread.module_call, thread.root, thread.context
            with lock:
                called = by_module.get((id(module), outer_root)) if outer >= 0 else None
                if called is None or called.module() is not module:
                    try:
                        called = find(module, thread, thread.module_call < 0, _getframe(1))
                    except NbkitError:  # an observer refuses the model
                        raise
                    except Exception as error:  # of a module that cannot be asked: what it does is the step's
                        thread.root, called = outer_root, None
                        recording.skip(not_described(module, error))
                if called is not None:
                    thread.module_call = len(module_calls)
                    training = module.__dict__.get("training", True)
                    module_calls.append((called.number, called.calls, node is not None, training))
                    called.calls += 1
            if called is None:
                return patch.before(module, *args, **kwargs)
            recording.update_context(thread)
            change = api.enter_module(module, called.may_fuse, thread)
            try:
                return around.call(called, module, args, kwargs, patch.before)
            finally:
                if change is not None:
                    change()
                thread.module_call, thread.root, thread.context = outer, outer_root, context

        patch.install(around.passing(__call__))

    def remove(self) -> None:
        self.patch.remove()
