"""Reads what the registry kept of every tensor as columns: one entry per tensor record."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from torch import Tensor

from nbkit.capture.frames.string_columns import numbered
from nbkit.capture.raw.shards import local_shard
from nbkit.capture.raw.tensor_registry import TensorRegistry

UNKNOWN = np.iinfo(np.int64).min  # below all keys of records, also those of tensors without storage


class TensorColumns:
    """Holds the registry's records, read once when the step is over.

    A step has many tensors but few geometries (shape, stride, offset, dtype): those are numbered, and whatever follows
    from them is worked out once for each.
    """

    def __init__(self, registry: TensorRegistry) -> None:
        raw = registry.records
        self.count = raw.row_count
        self.fresh = raw.integers("fresh").astype(bool)
        self.storage = raw.integers("storage")
        self.requires_grad = raw.integers("requires_grad").astype(bool)
        self.geometry = raw.integers("geometry")
        self.geometries = list(registry.geometries)
        self.memory_and_geometry = self.storage * len(self.geometries) + self.geometry
        self.by_memory = np.argsort(self.memory_and_geometry, kind="stable")
        self.in_order = self.memory_and_geometry[self.by_memory]
        self.device, self.devices = self._devices(registry)
        # Bytes of layouts whose size does not follow from the shape; -1 for the others, -2 if unknown.
        self.nbytes = np.full(self.count, -1, dtype=np.int64)
        self.nbytes[list(registry.special)] = [nbytes for _, nbytes in registry.special.values()]
        self._find = registry.find

    def _devices(self, registry: TensorRegistry) -> tuple[np.ndarray, list[Any]]:
        special = [device for device, _ in registry.special.values()]
        codes, devices = numbered([*registry.devices, *special])
        # One entry more, which answers for tensors without a storage until their own device is put in.
        of_storage = np.append(codes[: len(registry.devices)], -1)
        device = of_storage[self.storage]
        device[list(registry.special)] = codes[len(registry.devices) :]
        return device, devices

    def records_of(self, tensors: Iterable[Tensor]) -> list[list[int]]:
        """Returns for each tensor the numbers of the records that describe its memory in its geometry."""
        keys = np.array([self._key(local_shard(tensor)) for tensor in tensors], dtype=np.int64)
        starts, ends = self.in_order.searchsorted(keys), self.in_order.searchsorted(keys, "right")
        return [self.by_memory[start:end].tolist() for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]

    def _key(self, tensor: Tensor) -> int:
        """Returns `memory_and_geometry` of a tensor; one that no record has where it was not met."""
        found = self._find(tensor)
        return UNKNOWN if found is None else found[0] * len(self.geometries) + found[1]
