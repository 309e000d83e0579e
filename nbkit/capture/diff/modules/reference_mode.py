"""The dispatch mode in which a module runs on the reference: in its precision, without draws or writes to others."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode

from nbkit.capture.raw.conj_neg import as_bare
from nbkit.capture.replay.copies import WIDER, all_tensors, mapped_call, tensors_in
from nbkit.capture.replay.op_traits import COLLECTIVES, OpTraits, draws, traits_of, written_tensors
from nbkit.capture.replay.reference import CPU, perturbing
from nbkit.numerics.noise_ratio import summed

# Beyond, good kernels add in blocks; see growth() in nbkit/numerics/noise_ratio.py.
LONGEST = 4096.0
RANDOM = "random modules, such as Dropout in training"


class NotRunError(Exception):
    """A module cannot run on a reference without changing the step; says why."""


class ReferenceMode(TorchDispatchMode):
    """Runs each op in one floating-point precision on the CPU, whatever dtypes and devices the module's code names.

    With a generator it also changes the inputs of each op by eps, at random up or down, as rounding may: what comes
    out differs by what a correct module in that precision may be off. `length` is that of its longest sum.
    """

    def __init__(self, dtype: torch.dtype, noise: tuple[np.random.Generator, float] | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.wider, self.dtype, self.noise = WIDER[dtype], dtype, noise
        self.length = 1.0
        self.packets: set[str] = set()  # of the ops that it ran
        self.named: set[torch.dtype] = set()  # narrower ones that the module's code asks for
        self.own: set[int] = set()  # memory that the run may write to

    def may_write(self, tensors: Iterable[Tensor]) -> None:
        """Lets the run write to these tensors, as it may to all that it makes."""
        self.own.update(memory for tensor in tensors if (memory := _memory(tensor)) is not None)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        traits = traits_of(func)
        self._check(traits, args, kwargs)
        written = written_tensors(traits, args, kwargs)
        same = {id(tensor): tensor for tensor in written}
        args, kwargs = mapped_call(args, kwargs, self._widened, dict(same))
        if self.noise is not None and traits.leave_out is None:
            args, kwargs = mapped_call(args, kwargs, _dense(perturbing(*self.noise)), same)
        out = as_bare(func, args, kwargs)
        if not written and traits.leave_out != "views":
            out = self._fresh(out)
        self._note(traits, all_tensors(args, kwargs), [*tensors_in(out)])
        return out

    def _check(self, traits: OpTraits, args: Any, kwargs: Any) -> None:
        """Raises NotRunError for a call that must not run."""
        if not isinstance(traits.func, OpOverload):
            raise NotRunError("modules with higher-order ops")
        if traits.func.namespace in COLLECTIVES:
            raise NotRunError("modules with collectives, which other processes wait for")
        if traits.is_random and draws(traits, args, kwargs):
            raise NotRunError(RANDOM)
        if traits.name == "aten.view.dtype" and args[0].is_floating_point():
            raise NotRunError("modules that read the bits of floating-point numbers")
        for tensor in written_tensors(traits, args, kwargs):
            memory = _memory(tensor)
            if memory is not None and memory not in self.own:
                raise NotRunError("modules that write to tensors which they neither hold nor are given")

    def _widened(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            wide = self.wider.get(value.dtype, value.dtype)
            return value if value.dtype == wide and value.is_cpu else value.to(CPU, wide)
        if isinstance(value, torch.dtype):
            if value in self.wider and value.is_floating_point:
                self.named.add(value)
            return self.wider.get(value, value)
        return CPU

    def _fresh(self, out: Any) -> Any:
        """Returns results of torch's default dtype (torch.ones(3)) in that of the reference."""
        if isinstance(out, Tensor):
            wide = self.wider.get(out.dtype, out.dtype)
            return out if out.dtype == wide else out.to(wide)
        if type(out) in (list, tuple):
            return type(out)(map(self._fresh, out))
        return out

    def _note(self, traits: OpTraits, inputs: list[Tensor], results: list[Tensor]) -> None:
        self.may_write(results)
        self.packets.add(traits.packet)
        if self.noise is None and not traits.is_pointwise and traits.leave_out is None and results:
            length = summed([tensor.numel() for tensor in inputs], max(tensor.numel() for tensor in results))
            self.length = max(self.length, min(length, LONGEST))


def _dense(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: value if isinstance(value, Tensor) and value.layout is not torch.strided else change(value)


def _memory(tensor: Tensor) -> int | None:
    """Returns what tells the memory of a tensor from that of others; None for layouts without one storage."""
    return tensor.untyped_storage()._cdata if tensor.layout is torch.strided else None
