"""Makes torch.autocast cast the same ops on a simulated device as on the CPU, and in the same way."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from nbkit.simulated.call import tensors_in

KEY = "AutocastPrivateUse1"
# torch tells which ops autocast treats on the CPU, but not how: these compute in the lower precision, PROMOTED in the
# widest dtype among their inputs, and all others in float32 (aten/src/ATen/autocast_mode.cpp).
LOWER = frozenset(
    "conv1d conv2d conv3d bmm mm linalg_vecdot baddbmm addmm _addmm_activation addbmm linear _convolution matmul "
    "conv_tbc mkldnn_rnn_layer conv_transpose1d conv_transpose2d conv_transpose3d prelu scaled_dot_product_attention "
    "_native_multi_head_attention".split()
)
PROMOTED = frozenset("cat stack index_copy".split())


def register_autocast(device_type: str) -> list[torch.library.Library]:
    """Registers what autocast does with each op; returns the libraries, which the registrations live as long as."""
    fallthrough, library = torch.library.Library("_", "IMPL"), torch.library.Library("aten", "IMPL")
    fallthrough.fallback(torch.library.fallthrough_kernel, KEY)
    for op in ops_on_cpu():
        library.impl(op, _casting(op, device_type), KEY)
    return [fallthrough, library]


def ops_on_cpu() -> Iterator[Any]:
    """Yields the ops that torch's autocast treats on the CPU."""
    for name in torch._C._dispatch_get_all_op_names():
        namespace, _, rest = name.partition("::")
        if namespace == "aten" and torch._C._dispatch_has_kernel_for_dispatch_key(name, "AutocastCPU"):
            packet, _, overload = rest.partition(".")
            yield getattr(getattr(torch.ops.aten, packet), overload or "default")


def _casting(op: Any, device_type: str) -> Callable[..., Any]:
    name = op._schema.name.partition("::")[2]
    off = torch._C.DispatchKeySet(torch._C._dispatch_key_parse(KEY))

    def run(*args: Any, **kwargs: Any) -> Any:
        tensors = [tensor for tensor in tensors_in([*args, *kwargs.values()]) if _is_eligible(tensor, device_type)]
        lower = torch.get_autocast_dtype(device_type)
        dtype = torch.float32
        if name in LOWER or (name in PROMOTED and all(tensor.dtype == lower for tensor in tensors)):
            dtype = lower
        # As in torch's own kernels: inside, autocast is off.
        with torch._C._ExcludeDispatchKeyGuard(off):
            cast = [_cast(arg, dtype, device_type) for arg in args]
            return op(*cast, **{key: _cast(arg, dtype, device_type) for key, arg in kwargs.items()})

    return run


def _is_eligible(tensor: Tensor, device_type: str) -> bool:
    return tensor.device.type == device_type and tensor.is_floating_point() and tensor.dtype != torch.float64


def _cast(value: Any, dtype: torch.dtype, device_type: str) -> Any:
    if isinstance(value, Tensor):
        return value.to(dtype) if _is_eligible(value, device_type) else value
    return [_cast(item, dtype, device_type) for item in value] if isinstance(value, list | tuple) else value
