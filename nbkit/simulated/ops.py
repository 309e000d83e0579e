"""Runs an op of the simulated device: on the CPU tensors inside, and wraps what comes out again."""

from typing import Any

import torch
from torch import Tensor
from torch.utils._mode_utils import no_dispatch

from nbkit.simulated.composites import COMPOSITES
from nbkit.simulated.engine import let_this_thread_run_backward
from nbkit.simulated.faults.plan import active_plan

CPU = torch.device("cpu")
# Ops that take CPU tensors next to the device's, as they do on a GPU: transfers, indices, lengths.
MIXED = frozenset("copy_ _copy_from index index_put index_put_ _index_put_impl_ _pack_padded_sequence".split())
TRANSFERS = frozenset(("copy_", "_copy_from"))
# Outputs that stay on the CPU, where torch reads them directly.
HOST_OUTPUTS = {"_pack_padded_sequence": 1}
CONJUGATE, NEGATIVE = torch._C.DispatchKey.Conjugate, torch._C.DispatchKey.Negative
NotExcluded = torch._C._SetExcludeDispatchKeyGuard


def run_op(kind: type[Tensor], func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Returns what `func` returns for arguments of which some are of `kind`, the device's tensors."""
    let_this_thread_run_backward()
    decomposed = _decomposed(func, args, kwargs)
    if decomposed is not NotImplemented:
        return decomposed
    name = func._schema.name.partition("::")[2]
    crossing = Crossing(kind)
    raw_args = [crossing.unwrap(arg) for arg in args]
    raw_kwargs = {key: crossing.unwrap(arg) for key, arg in kwargs.items()}
    crossing.check_devices(func, name)
    target = kwargs.get("device")
    if target is not None and target.type != crossing.home.type:
        return func(*raw_args, **raw_kwargs)  # what leaves the device is never spoiled
    if target is not None:
        check_index(target)
        raw_kwargs["device"] = CPU
    run = func if crossing.hosts and name in TRANSFERS else active_plan().runner(func)
    out = _resolving(run, raw_args, raw_kwargs) if crossing.has_complex else run(*raw_args, **raw_kwargs)
    if func._schema.is_mutable:
        crossing.align()
    return crossing.wrap(out, HOST_OUTPUTS.get(name))


def _resolving(run: Any, args: Any, kwargs: Any) -> Any:
    """Returns what `run` returns, with torch's lazy conj() and neg() in force, which it leaves out here (2.13).

    A kernel that is made of other ops computes with numbers that were not conjugated otherwise, as in linalg.pinv.
    """
    with NotExcluded(CONJUGATE, False), NotExcluded(NEGATIVE, False):
        return run(*args, **kwargs)


def _decomposed(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Returns what a composite op returns by way of its parts, each an op of the device; NotImplemented for other ops.

    Autograd takes composites apart before they come here, but for inference mode, which goes without autograd, and for
    what runs below it already, such as the `to` by which a dispatch mode reads a tensor.
    """
    if func in COMPOSITES:
        return COMPOSITES[func](*args, **kwargs)
    return (
        func.decompose(*args, **kwargs) if func._opname == "to" or torch.is_inference_mode_enabled() else NotImplemented
    )


def check_index(device: torch.device | None) -> None:
    """Raises RuntimeError for a second device of the kind: there is one."""
    if device is not None and device.index:
        raise RuntimeError(f"There is no {device}: a process has one simulated device, {device.type}:0.")


class Crossing:
    """Takes the tensors of one op in and out: device tensors met, and CPU tensors next to them."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        self.by_raw: dict[int, Any] = {}  # device tensors by the id of their raw one
        self.hosts: list[Tensor] = []
        self.home, self.has_complex = CPU, False

    def unwrap(self, value: Any) -> Any:
        """Returns `value` with CPU tensors in place of the device's."""
        if isinstance(value, self.kind):
            self.by_raw[id(value.raw)] = value
            self.home = value.device
            self.has_complex |= value.raw.is_complex()
            return value.raw
        if isinstance(value, Tensor):
            self.hosts.append(value)
        elif type(value) in (list, tuple):
            return type(value)(self.unwrap(item) for item in value)
        return value

    def check_devices(self, func: Any, name: str) -> None:
        """Raises torch's error of mixed devices; a number in a 0-dim CPU tensor may meet any device."""
        if self.hosts and name not in MIXED and any(host.dim() for host in self.hosts):
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but found at least two devices, {self.home} and "
                f"{self.hosts[0].device}! (when running {func})"
            )

    def wrap(self, value: Any, host_output: int | None = None) -> Any:
        """Wraps the CPU tensors of `value`: those that came in as what they were, views on the memory of a base."""
        if isinstance(value, Tensor):
            return self.by_raw.get(id(value)) if id(value) in self.by_raw else self._wrap_new(value)
        if isinstance(value, list | tuple):
            return type(value)(item if n == host_output else self.wrap(item) for n, item in enumerate(value))
        return value

    def _wrap_new(self, raw: Tensor) -> Any:
        made = self.kind(raw, self.home)
        memory = raw.untyped_storage()._cdata
        for tensor in self.by_raw.values():
            if tensor.raw.untyped_storage()._cdata == memory:
                # torch and the recorders tell shared memory by the storage object.
                torch._functionalize_unsafe_set(made, tensor)
                break
        return made

    def align(self) -> None:
        """Gives the tensors the sizes, strides and offset of their raw ones, which the op may have changed in place."""
        for tensor in self.by_raw.values():
            raw = tensor.raw
            if (raw.size(), raw.stride(), raw.storage_offset()) == (
                tensor.size(),
                tensor.stride(),
                tensor.storage_offset(),
            ):
                continue
            # Out of sight of autograd and of modes: the op itself has passed them already.
            with no_dispatch():
                torch._functionalize_unsafe_set(tensor, self.kind(raw, self.home))
                torch.ops.aten.as_strided_.default(tensor, raw.size(), raw.stride(), raw.storage_offset())
