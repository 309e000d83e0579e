"""Tensor identity and metadata: every tensor the step touches gets a number that is never reused."""

from typing import Any, NamedTuple
from weakref import ref

import torch
from torch import Tensor


class TensorRecord(NamedTuple):
    """What was read of a tensor when it was first met."""

    fresh: bool  # came out of an op, so it is not an earlier tensor seen through another Python object
    storage: int  # number of its storage, -1 where it has none of its own
    shape: Any
    stride: Any
    offset: int
    dtype: torch.dtype
    device: torch.device
    requires_grad: bool
    layout: torch.layout
    nbytes: int  # of layouts whose size does not follow from the shape; else -1


class TensorRegistry:
    """Numbers tensors by object and, where the object is new, remembers their metadata.

    Weak references tell a live tensor from a later one at the same address. Autograd wraps saved tensors anew for the
    backward pass, so an unknown object is not necessarily a new tensor: `frames` matches those by storage and geometry.
    """

    def __init__(self) -> None:
        self.records: list[TensorRecord] = []
        self.known: dict[int, tuple[Any, int]] = {}
        self.storages: dict[int, tuple[Any, int]] = {}
        self.storage_count = 0
        self.skipped: dict[str, int] = {}
        self._places: dict[Any, list[int]] | None = None

    def learn(self, tensor: Tensor, fresh: bool) -> int:
        """Number of a tensor that is not known yet; -1 if its metadata cannot be read."""
        try:
            if type(tensor) in PLAIN and tensor.layout is torch.strided:
                return self._learn_strided(tensor, fresh)
            # A subclass may hook attribute access: its own code must not run because of us.
            with torch._C.DisableTorchFunction():
                return self._learn_other(tensor, fresh)
        except Exception as error:  # an exotic tensor must never break the user's step
            reason = f"tensor not described: {type(tensor).__name__} ({type(error).__name__})"
            self.skipped[reason] = self.skipped.get(reason, 0) + 1
            return -1

    def forget(self, tensor: Any) -> None:
        """Read this tensor anew when it is next met: its metadata was changed in place."""
        self.known.pop(id(tensor), None)

    def storage_number(self, storage: Any) -> int:
        entry = self.storages.get(id(storage))
        if entry is None or entry[0]() is not storage:
            entry = self.storages[id(storage)] = (ref(storage), self.storage_count)
            self.storage_count += 1
        return entry[1]

    def records_of(self, tensor: Tensor) -> list[int]:
        """Numbers of the records that describe this tensor, as it is now, or its memory in the same geometry."""
        if self._places is None:
            self._places = {}
            for number, record in enumerate(self.records):
                self._places.setdefault(record[1:6], []).append(number)
        try:
            entry = self.storages.get(id(tensor.untyped_storage()))
            if entry is None or entry[0]() is not tensor.untyped_storage():
                return []
            key = (entry[1], tensor.shape, tensor.stride(), tensor.storage_offset(), tensor.dtype)
            return self._places.get(key, [])
        except (RuntimeError, NotImplementedError):  # a parameter without storage: sparse, lazy
            return []

    def _learn_strided(self, tensor: Tensor, fresh: bool) -> int:
        storage = tensor.untyped_storage()
        requires_grad = tensor.requires_grad
        number = len(self.records)
        self.records.append(
            TensorRecord(
                fresh,
                self.storage_number(storage),
                tensor.shape,
                tensor.stride(),
                tensor.storage_offset(),
                tensor.dtype,
                tensor.device,
                requires_grad,
                torch.strided,
                -1,
            )
        )
        # torch.utils.swap_tensors refuses tensors with weak references and is used on parameters: those are told apart
        # by a weak reference to their storage instead.
        anchor = ref(storage) if requires_grad and tensor.is_leaf else ref(tensor)
        self.known[id(tensor)] = (anchor, number)
        return number

    def _learn_other(self, tensor: Tensor, fresh: bool) -> int:
        layout = tensor.layout
        try:
            storage = self.storage_number(tensor.untyped_storage())
            stride: Any = tensor.stride()
            offset = int(tensor.storage_offset())
        except (RuntimeError, NotImplementedError):
            storage, stride, offset = -1, None, 0
        shape: Any = nested_sizes(tensor) if tensor.is_nested else tensor.shape
        number = len(self.records)
        self.records.append(
            TensorRecord(
                fresh,
                storage,
                shape,
                None if tensor.is_nested else stride,
                offset,
                tensor.dtype,
                tensor.device,
                tensor.requires_grad,
                layout,
                size_bytes(tensor),
            )
        )
        self.known[id(tensor)] = (ref(tensor), number)
        return number


PLAIN = frozenset({Tensor, torch.nn.Parameter, torch.nn.Buffer})


def nested_sizes(tensor: Tensor) -> tuple[Any, ...]:
    """Sizes of a nested tensor with None where its pieces differ."""
    pieces = [piece.shape for piece in tensor.unbind()]
    rows = list(zip(*pieces, strict=True))
    return (len(pieces), *(sizes[0] if len(set(sizes)) == 1 else None for sizes in rows))


def size_bytes(tensor: Tensor) -> int:
    """Bytes that a tensor of any layout holds; -1 where torch does not tell."""
    parts: list[Tensor]
    if tensor.layout is torch.sparse_coo:
        parts = [tensor._indices(), tensor._values()]
    elif tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        parts = [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    elif tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        parts = [tensor.ccol_indices(), tensor.row_indices(), tensor.values()]
    elif tensor.is_nested:
        parts = list(tensor.unbind())
    else:
        return int(tensor.numel()) * tensor.element_size() if tensor.layout is torch.strided else -1
    return sum(part.numel() * part.element_size() for part in parts)
