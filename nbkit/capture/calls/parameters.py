"""Refers to the parameters of a model by their names, so that a folder of captured calls need not hold them."""

from collections.abc import Callable, Mapping
from typing import Any
from zlib import crc32

import numpy as np
import torch
from torch import Tensor, nn

from nbkit.capture.calls.encode import NotCapturedError
from nbkit.capture.calls.memory import memory_of
from nbkit.errors import OptionError
from nbkit.numerics.precision import Array
from nbkit.trace.calls.layout import reference_name

Parameters = nn.Module | Mapping[str, Tensor]


class ReferencedParameters:
    """Knows the memory of a model's parameters, and whether it holds what it held at first.

    Only whole memories count: those of a tensor that is contiguous and shares its memory with nothing larger.
    """

    def __init__(self, parameters: Parameters | None) -> None:
        self.names: dict[int, str] = {}  # by address
        self.sums: dict[str, int] = {}
        self.held = parameters  # addresses are theirs as long as they live
        for name, tensor in checked_parameters(parameters).items():
            try:
                memory = memory_of(tensor)
            except NotCapturedError:
                continue
            if memory.size_bytes == tensor.nbytes and tensor.is_contiguous():
                self.names.setdefault(memory.storage.data_ptr(), name)

    def reference(self, address: int, size: int, data: Array) -> str | None:
        """Returns the name of the whole content of a storage; None if it is no parameter's, or was written to since."""
        name = self.names.get(address) if size else None
        if name is None or len(data) != size:
            return None
        now = crc32(data.data)
        return reference_name(name, now) if self.sums.setdefault(name, now) == now else None


def parameter_reader(parameters: Parameters | None) -> Callable[[str], Array | None]:
    """Returns a function that gives the bytes of the parameter of a name; None for a name that is not there."""
    # A state_dict has the buffers, too, which the one that was captured may have had.
    tensors = checked_parameters(parameters.state_dict() if isinstance(parameters, nn.Module) else parameters)

    def read(name: str) -> Array | None:
        tensor = tensors.get(name)
        if tensor is None:
            return None
        flat = tensor.detach().contiguous().reshape(-1).cpu().view(torch.uint8) if tensor.numel() else torch.empty(0)
        return np.asarray(flat.numpy(), np.uint8)

    return read


def checked_parameters(parameters: Any) -> dict[str, Tensor]:
    """Returns the parameters of a model, or the tensors of a state_dict, by name. Raises OptionError for others."""
    if parameters is None:
        return {}
    if isinstance(parameters, nn.Module):
        # Buffers are saved: forward passes write to those of norms.
        every = parameters.named_parameters()
        return {name: tensor.detach() for name, tensor in every if not nn.parameter.is_lazy(tensor)}
    if isinstance(parameters, Mapping) and all(isinstance(tensor, Tensor) for tensor in parameters.values()):
        return {str(name): tensor.detach() for name, tensor in parameters.items()}
    raise OptionError(
        f"parameters= takes a model or its state_dict, and this is a {type(parameters).__name__}; give the model."
    )
