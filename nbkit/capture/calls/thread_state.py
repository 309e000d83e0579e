"""Keeps what is set in a thread where a step begins, and sets it again around another run of that step."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import filterfalse
from typing import Any

import torch
from torch import _C
from torch.autograd import forward_ad
from torch.backends import cuda
from torch.overrides import _get_current_function_mode_stack
from torch.utils import _device, deterministic
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from nbkit.capture.calls.state import call_state, device_state, set_state

AUTOCAST_DEVICES = ("cpu", "cuda", "privateuseone")
Setting = tuple[Callable[[], Any], Callable[[Any], object]]
TRANSFORM = "a transform of torch.func around it"


class ThreadState:
    """Holds modes, autocast, default device and dtype, precision, and what chooses kernels, as they are set now.

    `missing` says in words what cannot be set again. The modes stay the objects that they are.
    """

    def __init__(self) -> None:
        with _C.DisableTorchFunction():
            state = call_state() | (device_state() if torch.cuda.is_initialized() else {})
            self.is_inference = state.pop("inference")
            self.state = {name: value for name, value in state.items() if name != "autocast"}
            self.settings = {name: read() for name, (read, _) in SETTINGS.items()}
        self.function_modes = [*filterfalse(_is_own, _get_current_function_mode_stack())]
        self.dispatch_modes = dispatch_modes()
        has_transform = _C._functorch.peek_interpreter_stack() is not None or forward_ad._current_level >= 0
        self.missing = [TRANSFORM] if has_transform else []

    @contextmanager
    def put_back(self) -> Iterator[None]:
        """Sets all of it inside; sets at exit what was there before, also where a step has left something else."""
        before = ThreadState()
        differs = self.is_inference != before.is_inference
        with torch.inference_mode(self.is_inference) if differs else nullcontext():
            self.set()
            try:
                yield
            finally:
                before.set()

    def set(self) -> None:
        """Sets all but inference mode; only what differs: some settings import much of torch."""
        now = ThreadState()
        with _C.DisableTorchFunction():
            set_state({name: value for name, value in self.state.items() if now.state.get(name) != value})
            for name, (_, write) in SETTINGS.items():
                if now.settings[name] != self.settings[name]:
                    write(self.settings[name])
        if [*map(id, self.function_modes)] != [*map(id, now.function_modes)]:
            modes = [_C._pop_torch_function_stack() for _ in range(_C._len_torch_function_stack())][::-1]
            for mode in [*self.function_modes, *filter(_is_own, modes)]:
                _C._push_on_torch_function_stack(mode)
        if [*map(id, self.dispatch_modes)] != [*map(id, now.dispatch_modes)]:
            modes = [_C._pop_torch_dispatch_stack(None) for _ in range(_C._len_torch_dispatch_stack())][::-1]
            for mode in [*self.dispatch_modes, *filter(_is_own, modes)]:
                _C._push_on_torch_dispatch_stack(mode)


def thread_marks() -> tuple[Any, ...]:
    """Returns a few values that differ where modes, gradient mode, inference mode or autocast were set otherwise.

    They take a tenth of the time of a ThreadState; what is set once for a whole script is not among them.
    """
    included, excluded = _C._dispatch_tls_local_include_set(), _C._dispatch_tls_local_exclude_set()
    depths = _C._len_torch_function_stack(), _C._len_torch_dispatch_stack()
    return included.raw_repr(), excluded.raw_repr(), torch.is_grad_enabled(), *depths


def _is_own(mode: object) -> bool:
    return type(mode).__module__.startswith("nbkit.")


def dispatch_modes() -> list[Any]:
    """Returns the dispatch modes that are none of nbkit's, the outermost first."""
    return [*filterfalse(_is_own, _get_current_dispatch_mode_stack())]


def autocast_nesting() -> int:
    """Returns how many blocks of autocast the thread is in."""
    nesting = torch.autocast_increment_nesting() - 1
    torch.autocast_decrement_nesting()
    return int(nesting)


def _set_nesting(nesting: int) -> None:
    while (now := autocast_nesting()) != nesting:
        (torch.autocast_decrement_nesting if now > nesting else torch.autocast_increment_nesting)()


def _hooks(others: Sequence[Any] | None = None) -> list[Any]:
    """Returns the hooks for tensors that are saved for the backward pass, the outermost first; sets others."""
    found: list[Any] = []
    while (top := _C._autograd._top_saved_tensors_default_hooks(True)) is not None:
        found.insert(0, top)
        _C._autograd._pop_saved_tensors_default_hooks()
    for hooks in found if others is None else others:
        _C._autograd._push_saved_tensors_default_hooks(*hooks)
    return found


def _attribute(holder: Any, name: str) -> Setting:
    return partial(getattr, holder, name, None), partial(setattr, holder, name)


# Beside what call_state() and device_state() read: how to read it and how to set it.
SETTINGS: dict[str, Setting] = {
    **{
        f"{what} of {device}": (partial(read, device), partial(write, device))
        for device in AUTOCAST_DEVICES
        for what, read, write in (
            ("autocast", torch.is_autocast_enabled, torch.set_autocast_enabled),
            ("dtype", torch.get_autocast_dtype, torch.set_autocast_dtype),
        )
    },
    "autocast_cache": (torch.is_autocast_cache_enabled, torch.set_autocast_cache_enabled),
    "autocast_nesting": (autocast_nesting, _set_nesting),
    "deterministic": (torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode),  # with warn_only
    "fill": _attribute(deterministic, "fill_uninitialized_memory"),
    **{
        f"{kind} attention": (getattr(cuda, f"{kind}_sdp_enabled"), getattr(cuda, f"enable_{kind}_sdp"))
        for kind in ("flash", "mem_efficient", "math", "cudnn")
    },
    "attention_order": (_C._get_sdp_priority_order, _C._set_sdp_priority_order),
    "anomaly": (
        lambda: (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()),
        lambda modes: torch.set_anomaly_enabled(*modes),
    ),
    "saved_tensors": (_hooks, _hooks),
    "default_device": _attribute(torch._GLOBAL_DEVICE_CONTEXT, "device_context"),
    "current_device": _attribute(_device, "CURRENT_DEVICE"),
}
