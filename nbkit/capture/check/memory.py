"""Tracks whether the memory that the ops of a step have written to is finite."""

import torch
from torch import Tensor

from nbkit.capture.raw.tensor_registry import TensorRegistry


class Memory:
    """Holds whether all that was written to a storage is finite, by the number of the storage in the recording."""

    def __init__(self, registry: TensorRegistry) -> None:
        self.registry = registry
        self.is_finite: dict[int, bool] = {}

    def note(self, tensor: Tensor, is_finite: bool) -> None:
        """Notes whether a tensor is finite; nothing for layouts without a storage."""
        storage = storage_of(tensor)
        if storage is not None:
            self.is_finite[self.registry.storage_number(storage, tensor.device)] = is_finite

    def was_finite(self, tensor: Tensor) -> bool | None:
        """Returns whether what was written to its storage is finite; None if nothing is known of it."""
        storage = storage_of(tensor)
        number = None if storage is None else self.registry.find_storage(storage)
        return None if number is None else self.is_finite.get(number)


def stored(tensor: Tensor) -> Tensor:
    """Returns the part of a tensor that lies in a storage: the values of a sparse one, else the tensor itself."""
    if tensor.layout is torch.sparse_coo:
        return tensor._values()
    is_compressed = tensor.layout in (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)
    return tensor.values() if is_compressed else tensor


def storage_of(tensor: Tensor) -> torch.UntypedStorage | None:
    """Returns the storage of a tensor; None for layouts without one."""
    try:
        return tensor.untyped_storage()
    except RuntimeError:
        return None
