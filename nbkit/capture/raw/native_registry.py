"""Keeps the tensor registry of a recording with the native recorder: one set of numbers for both."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from nbkit.capture.raw.flat_list import FlatList
from nbkit.capture.raw.tensor_registry import FIELDS, PLAIN, TensorRegistry


class NativeRegistry(TensorRegistry):
    """Numbers plain tensors in C++, by the tensor itself, and all others as TensorRegistry does."""

    def __init__(self, library: Any) -> None:
        self.library = library
        super().__init__()
        self.tensors = library.Tensors(self.records, self.devices, self.geometries)

    def _log(self) -> FlatList:
        log: FlatList = self.library.TensorLog((), FIELDS)
        return log

    def _learner(self) -> Callable[[Tensor, bool], int]:
        return self.number

    def forget(self, tensor: Any) -> None:
        super().forget(tensor)
        if isinstance(tensor, Tensor):
            self.tensors.forget(tensor)

    def number(self, tensor: Tensor, fresh: bool = False) -> int:
        known: int | None = self.tensors.number(tensor, fresh) if type(tensor) in PLAIN else None
        if known is not None:
            return known
        entry = self.known.get(id(tensor))
        return entry[1] if entry is not None and entry[0]() is tensor else self.learn_any(tensor, fresh)

    def storage_number(self, storage: torch.UntypedStorage, device: torch.device) -> int:
        number: int = self.tensors.storage_number(storage, device)
        return number

    def find_storage(self, storage: torch.UntypedStorage) -> int | None:
        number: int | None = self.tensors.find_storage(storage)
        return number

    def find(self, tensor: Tensor) -> tuple[int, int] | None:
        found: tuple[int, int] | None = self.tensors.find(tensor) if type(tensor) in PLAIN else None
        return super().find(tensor) if found is None else found

    def survivors(self) -> dict[int, bool]:
        alive: dict[int, bool] = self.tensors.survivors()
        return super().survivors() | alive

    def live_storages(self) -> set[int]:
        return set(self.tensors.live_storages())
