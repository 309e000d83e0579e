"""What is known of the memory that the ops of a step have written to."""

from typing import Any
from weakref import ref

import torch
from torch import Tensor


class Memory:
    """Whether all that was written to a storage is finite, by storage.

    The finite ones are kept by id alone, which is quick; where another storage gets the id of one that is gone, it was
    most likely written to by an op as well.
    """

    def __init__(self) -> None:
        self.seen: set[int] = set()
        self.bad: dict[int, Any] = {}

    def note(self, tensor: Tensor, is_finite: bool) -> None:
        """Keep what was found in a tensor; nothing for layouts without a storage."""
        storage = storage_of(tensor)
        if storage is None:
            return
        self.seen.add(id(storage))
        if not is_finite:
            self.bad[id(storage)] = ref(storage)
        elif self.bad:
            self.bad.pop(id(storage), None)

    def was_finite(self, tensor: Tensor) -> bool | None:
        """Whether what was written to its storage is finite; None if nothing is known of it."""
        storage = storage_of(tensor)
        held = self.bad.get(id(storage))
        if held is not None and held() is storage:
            return False
        return True if id(storage) in self.seen else None


def storage_of(tensor: Tensor) -> torch.UntypedStorage | None:
    """The storage of a tensor; None for layouts without one."""
    try:
        return tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):
        return None
