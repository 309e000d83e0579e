"""Defines the tensor of a simulated device: what torch and the user see, and the CPU tensor that holds its values."""

from typing import Any

import torch
from torch import Tensor

from nbkit.simulated.ops import run_op


class SimulatedTensor(Tensor):
    """Pretends to be on the simulated `device`; `raw` is the CPU tensor that it computes with.

    Views of one memory are views of one raw memory, with the same sizes, strides and offset.
    """

    raw: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def __new__(cls: Any, raw: Tensor, device: torch.device) -> "SimulatedTensor":
        if raw.layout is not torch.strided:
            raise NotImplementedError(
                f"A simulated device holds dense tensors only, and this one is {raw.layout}; keep it on the CPU, or "
                f"make it dense with .to_dense()."
            )
        made: SimulatedTensor = Tensor._make_wrapper_subclass(
            cls, raw.size(), strides=raw.stride(), storage_offset=raw.storage_offset(), dtype=raw.dtype, device=device
        )
        # torch conjugates and negates when an op reads the values. It does so above this class, and must know.
        torch._C._set_conj(made, raw.is_conj())
        torch._C._set_neg(made, raw.is_neg())
        made.raw = raw
        return made

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]  # torch's own is a function without a class
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if not all(issubclass(cls, kind) for kind in types):
            return NotImplemented
        return run_op(cls, func, args, kwargs or {})

    # With these two, Module.to() and its kin swap the content of parameters that go to the device: they stay the
    # objects that the optimizer and tied modules hold.
    def __tensor_flatten__(self) -> tuple[list[str], torch.device]:
        return ["raw"], self.device

    @staticmethod
    def __tensor_unflatten__(inner: Any, device: torch.device, size: Any, stride: Any) -> "SimulatedTensor":
        return SimulatedTensor(inner["raw"], device)

    @property
    def data(self) -> Tensor:
        seen: Tensor = Tensor.data.__get__(self)  # type: ignore[attr-defined]
        return seen

    @data.setter
    def data(self, value: Tensor) -> None:
        Tensor.data.__set__(self, value)  # type: ignore[attr-defined]  # raises for a tensor of another device
        self.raw = value.raw  # type: ignore[attr-defined]

    def tolist(self) -> Any:
        return self.raw.tolist()

    def numpy(self, *, force: bool = False) -> Any:
        if not force:
            raise TypeError(
                f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
                f"memory first."
            )
        return self.detach().cpu().numpy()

    def __array__(self, dtype: Any = None) -> Any:
        return self.numpy().__array__(dtype)

    def __reduce_ex__(self, protocol: Any) -> Any:
        # Saved as the CPU tensor it is, so that views stay views and a file opens where there is no such device.
        raw = self.raw.detach()
        if isinstance(self, torch.nn.Parameter):
            raw = torch.nn.Parameter(raw, self.requires_grad)
        elif self.is_leaf and self.requires_grad:
            raw.requires_grad_()
        return raw.__reduce_ex__(protocol)

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if self.dim() == 0 else object.__format__(self, spec)

    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError(f"a tensor on {self.device} has no memory to share; use Tensor.cpu() first.")

    def __repr__(self) -> str:  # type: ignore[override]
        text = repr(self.raw)[:-1] + f", device='{self.device}'"
        if self.grad_fn is not None:
            text += f", grad_fn=<{self.grad_fn.name()}>"
        elif self.requires_grad:
            text += ", requires_grad=True"
        return ("Parameter containing:\n" if isinstance(self, torch.nn.Parameter) else "") + text + ")"
