"""What older versions of torch do not have, from torch 2.6 on."""

import re
from collections.abc import Callable
from functools import wraps
from inspect import signature
from types import CodeType
from typing import Any

import torch
from torch import nn
from torch._C._autograd import DeviceType, _KinetoEvent
from torch._C._profiler import _ExperimentalConfig
from torch.export.graph_signature import OutputKind
from torch.utils import backend_registration, checkpoint

# Outputs of an exported program that are new values of its parameters; torch 2.8 and older have none.
PARAMETER_MUTATIONS = {kind for kind in OutputKind if kind.name == "PARAMETER_MUTATION"}
_COPIES = {"Memcpy": "gpu_memcpy", "Memset": "gpu_memset"}
_CALLS = {"cuda": "cuda_runtime", "hip": "cuda_runtime", "cu": "cuda_driver"}
_CALL = re.compile(r"(cuda|hip|cu)[A-Z]\w*")
# What Kineto itself did, and allocations, which are read from the tree of events.
_OTHERS = {
    **dict.fromkeys(("[memory]", "[OutOfMemory]"), "cpu_instant_event"),
    **dict.fromkeys(("Activity Buffer Request", "Buffer Flush", "Instrumentation", "Resource"), "overhead"),
    **dict.fromkeys(("Lazy Function Loading", "Command Buffer Full"), "overhead"),
}


def derived_activity(event: Any) -> str:
    """Returns the kind of an event of Kineto by its device and name, as torch 2.11 and older do not tell it."""
    name: str = event.name()
    is_host = event.device_type() == DeviceType.CPU
    if event.is_user_annotation():
        return "user_annotation" if is_host else "gpu_user_annotation"
    if not is_host:
        return _COPIES.get(name.partition(" ")[0], "kernel")
    if call := _CALL.fullmatch(name):
        return _CALLS[call[1]]
    return _OTHERS.get(name, "cpu_op")


# Methods of an event, called with it: the kind since torch 2.12, hidden events and metadata since 2.11 at the latest,
# the overload since 2.8, strides since 2.13 at the latest. Without them no event is hidden, metadata are empty, and
# overload and strides are not known.
activity = getattr(_KinetoEvent, "activity_type", derived_activity)
is_hidden = getattr(_KinetoEvent, "is_hidden_event", lambda event: False)
metadata_json = getattr(_KinetoEvent, "metadata_json", lambda event: "")
overload_name = getattr(_KinetoEvent, "overload_name", lambda event: None)
# By which a checkpoint without reentry ends what it computes again.
CHECKPOINT_STOP: type = getattr(checkpoint, "_StopRecomputationError", type("NoStop", (Exception,), {}))
input_strides: Callable[[Any], list[Any]] = getattr(_KinetoEvent, "structured_input_strides", lambda event: [])
# Whether events name overloads: aten.mm.default, not aten.mm.
NAMES_OVERLOADS = hasattr(_KinetoEvent, "overload_name")


def experimental_config(**options: bool) -> _ExperimentalConfig:
    """Returns Kineto's further options, without those that this torch does not know."""
    known = str(_ExperimentalConfig.__init__.__doc__)
    arguments: dict[str, Any] = {name: value for name, value in options.items() if f"{name}:" in known}
    return _ExperimentalConfig(**arguments)


# torch 2.8 and older show no function mode a call of torch.autograd.backward; that of Tensor.backward they show.
HIDES_BACKWARD = "has_torch_function" not in torch.autograd.backward.__code__.co_names


def shown(function: Callable[..., Any], run: Callable[..., Any]) -> Callable[..., Any]:
    """Returns what runs `run` in the place of a function of torch, and shows its calls to function modes."""

    @wraps(function)
    def showing(*args: Any, **kwargs: Any) -> Any:
        if torch._C._len_torch_function_stack():
            return torch.overrides.handle_torch_function(showing, (), *args, **kwargs)
        return run(*args, **kwargs)

    return showing


def set_version(tensor: torch.Tensor, version: int) -> None:
    """Sets how often a tensor counts as written to in place."""
    set_versions = torch._C._autograd._unsafe_set_version_counter
    try:
        set_versions((tensor,), (version,))
    except TypeError:  # torch 2.6 takes one tensor
        set_versions(tensor, version)  # type: ignore[arg-type]


def is_compile_wrapper(code: CodeType) -> bool:
    """Returns whether this is the code that torch.compile puts around a function.

    In torch 2.6 it has the name of what torch.compiler.disable() puts around one, which has no callback of its own.
    """
    return code.co_name == "compile_wrapper" or (code.co_name == "_fn" and "callback" in code.co_freevars)


def original_of(target: Any) -> Any | None:
    """Returns the module or function that torch.compile was given; null of what is not compiled."""
    if isinstance(target, nn.Module):
        inner = dict(target.__dict__.get("_modules", {}).items()).get("_orig_mod")  # of a scripted one it is no dict
        is_inside = target.__dict__.get("_compiled_call_impl") is not None  # module.compile()
        return inner if inner is not None else target if is_inside else None
    return getattr(target, "_torchdynamo_orig_callable", None)


def hide_from_compile(code: CodeType, *, with_callees: bool) -> None:
    """Lets torch.compile neither trace nor compile frames of `code`, nor, if asked, whatever they call.

    torch 2.6 has no such mark.
    """
    eval_frame: Any = torch._C._dynamo.eval_frame
    if hasattr(eval_frame, "set_code_exec_strategy"):
        skip, default = eval_frame._FrameAction.SKIP, eval_frame._FrameAction.DEFAULT
        strategy = eval_frame._FrameExecStrategy(skip, skip if with_callees else default)
        eval_frame.set_code_exec_strategy(code, strategy)


def innermost_saved_tensors_hooks() -> tuple[Callable[..., Any], Callable[..., Any]] | None:
    """Returns the hooks that pack and unpack what autograd saves; None without any, or if torch cannot tell."""
    asked = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)
    found: tuple[Callable[..., Any], Callable[..., Any]] | None = None if asked is None else asked(False)
    return found


def setup_of_backends_in_python() -> Callable[..., None] | None:
    """Returns the function that makes a device type of a backend in Python; None in torch 2.10 and older."""
    return getattr(backend_registration, "_setup_privateuseone_for_python_backend", None)


def current_accelerator() -> torch.device | None:
    """Returns the accelerator that is there, None without one."""
    current = torch.accelerator.current_accelerator
    if "check_available" in signature(current).parameters:
        return current(check_available=True)
    # torch 2.6 names the device that it was built for, also where there is none.
    return current() if torch.accelerator.is_available() else None
