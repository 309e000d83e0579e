"""Lets a step on shapes use accelerators that are not there, such as "cuda" on a machine without CUDA."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.nn import functional
from torch.overrides import handle_torch_function, has_torch_function

from nbkit.capture.raw.patching import Patch

CPU = torch.device("cpu")
FUSED = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
# What torch in C++ is told of a device that it knows nothing of, and the reverse. Its autograd would end the process on
# one, and takes "meta"; the number tells such a device from the user's own "meta".
STAND_INS: dict[torch.device, torch.device] = {}
STOOD_FOR: dict[torch.device, torch.device] = {}


def is_here(device: torch.device) -> bool:
    """Returns whether this torch can use a device."""
    return stand_in(device) == device


def stand_in(device: torch.device) -> torch.device:
    """Returns the device that torch in C++ is told of: the device itself, if this torch can use it."""
    found = STAND_INS.get(device)
    if found is None:
        module: Any = getattr(torch, device.type, None)
        is_used = device.type in ("cpu", "meta") or getattr(module, "is_available", lambda: False)()
        # A device of somebody else's, as the simulated one, may be there since autograd's engine began, without it.
        is_used &= device.type != torch._C._get_privateuse1_backend_name()
        found = STAND_INS[device] = device if is_used else torch.device("meta", device.index or 0)
        if not is_used:
            STOOD_FOR[found] = torch.device(device.type, device.index or 0)
    return found


def as_asked(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Returns named arguments of an op with the device that torch in C++ took another one for."""
    device = kwargs.get("device")
    if device is None or not STOOD_FOR or (asked := STOOD_FOR.get(device)) is None:
        return kwargs
    return {**kwargs, "device": asked}


def all_here(held: Any) -> Any:
    """Returns arguments of a call that runs with values, on the CPU where their device is not there."""
    if type(held) is torch.device:
        return held if is_here(held) else CPU
    if type(held) in (list, tuple):
        return type(held)([all_here(item) for item in held])
    return {name: all_here(item) for name, item in held.items()} if type(held) is dict else held


def _target(value: Any, tensor: Tensor) -> Any:
    """Returns where a tensor is to be moved, as torch in C++ can take it; any other argument as it is.

    Without a number torch asks which device of its kind is the current one.
    """
    try:
        named = torch.device(value) if isinstance(value, str | torch.device) else None
    except RuntimeError:  # no name of a device: torch says so
        return value
    if named is None or is_here(named):
        return value
    named = torch.device(named.type, named.index or 0)
    return stand_in(named) if tensor.device == named else named


@contextmanager
def moves_to_absent_devices() -> Iterator[None]:
    """Lets `tensor.to("cuda")`, `.cuda()` and `is_cuda` do in Python what torch does in C++ for devices that it has."""
    to, cuda = Patch(Tensor, "to"), Patch(Tensor, "cuda")

    def moved(tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if "device" in kwargs:
            kwargs = {**kwargs, "device": _target(kwargs["device"], tensor)}
        result: Tensor = to.before(tensor, *(_target(value, tensor) for value in args[:1]), *args[1:], **kwargs)
        return result

    def on_cuda(tensor: Tensor, device: Any = None, non_blocking: bool = False, **kwargs: Any) -> Tensor:
        named = torch.device("cuda", device or 0) if isinstance(device, int | None) else torch.device(device)
        if named.type != "cuda" or is_here(named):  # torch refuses the one, and does the other
            result: Tensor = cuda.before(tensor, device, non_blocking, **kwargs)
            return result
        if has_torch_function((tensor,)):  # a mode that sees functions
            seen: Tensor = handle_torch_function(on_cuda, (tensor,), tensor, named, non_blocking, **kwargs)
            return seen
        return moved(tensor, named, non_blocking=non_blocking, **kwargs)

    for function, name in ((moved, "to"), (on_cuda, "cuda")):
        function.__name__, function.__qualname__, function.__module__ = name, f"Tensor.{name}", Tensor.__module__
    is_cuda = property(lambda tensor: tensor.device.type == "cuda")
    to.install(moved)
    cuda.install(on_cuda)
    FakeTensor.is_cuda = is_cuda  # type: ignore[assignment]  # in C++ it is asked for the device that autograd is told
    try:
        yield
    finally:
        if vars(FakeTensor).get("is_cuda") is is_cuda:
            del FakeTensor.is_cuda
        cuda.remove()
        to.remove()


@contextmanager
def attention_on_absent_devices() -> Iterator[None]:
    """Has attention run as one op, as accelerators do; torch takes its separate ops for a device that it cannot use."""
    patch = Patch(functional, "scaled_dot_product_attention")

    def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        given = dict(zip(("attn_mask", "dropout_p", "is_causal"), args, strict=False)) | kwargs
        is_grouped = bool(given.get("enable_gqa"))
        is_plain = query.dim() == 4 and query.shape[-1] == value.shape[-1] and not query.shape[1] % max(key.shape[1], 1)
        is_plain &= is_grouped or query.shape[:2] == key.shape[:2]
        is_fused = torch.backends.cuda.flash_sdp_enabled() or torch.backends.cuda.mem_efficient_sdp_enabled()
        if is_here(query.device) or not (is_plain and is_fused):
            whole: Tensor = patch.before(query, key, value, *args, **kwargs)
            return whole
        if has_torch_function((query,)):
            result: Tensor = handle_torch_function(
                scaled_dot_product_attention, (query,), query, key, value, *args, **kwargs
            )
            return result
        given.pop("enable_gqa", None)
        # Of all fused ops the one without a rule for alignment; what it counts and saves is the same.
        out: Tensor = FUSED(query, key, value, **{"dropout_p": 0.0, **given})[0]
        return out

    scaled_dot_product_attention.__module__ = functional.__name__
    scaled_dot_product_attention.__qualname__ = scaled_dot_product_attention.__name__
    patch.install(scaled_dot_product_attention)
    try:
        yield
    finally:
        patch.remove()
