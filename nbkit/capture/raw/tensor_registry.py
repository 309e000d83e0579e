"""Identifies tensors: every tensor the step touches gets a number that is never reused, and its metadata is kept."""

from collections.abc import Callable
from typing import Any, NamedTuple
from weakref import ref

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from nbkit.capture.raw.flat_list import FlatList
from nbkit.capture.raw.shards import local_shard

PLAIN = frozenset({Tensor, torch.nn.Parameter, torch.nn.Buffer})


class TensorRecord(NamedTuple):
    """Holds what was read of a tensor when it was first met."""

    fresh: bool  # came out of an op, so it is not an earlier tensor seen through another Python object
    storage: int  # number of its storage, -1 where it has none of its own
    shape: Any
    stride: Any  # None for layouts without
    offset: int
    dtype: torch.dtype
    device: torch.device
    requires_grad: bool
    nbytes: int  # of layouts whose size does not follow from the shape; -1 otherwise, -2 if unknown


# What the hot path keeps of each tensor, of its geometry the number.
FIELDS = ("fresh", "storage", "geometry", "requires_grad")


class TensorRegistry:
    """Numbers tensors by object and remembers their metadata when they are first met.

    Weak references tell a live tensor from a later one at the same address. Autograd wraps saved tensors anew for the
    backward pass, so an unknown object is not necessarily a new tensor: `tensor_columns` matches those by storage and
    geometry. Everything is kept flat, since each small object more would cost the step time in garbage collections.
    """

    def __init__(self) -> None:
        self.records = self._log()
        # Numbers of the (shape, stride, offset, dtype) met so far: a step has many tensors but few of these.
        self.geometries: dict[tuple[Any, ...], int] = {}
        self.devices: list[torch.device] = []  # of each storage
        self.special: dict[int, tuple[torch.device, int]] = {}  # device and bytes of tensors that are not plain
        self.plain = set(PLAIN)  # types of tensors that can be asked as these
        self.known: dict[int, tuple[Any, int]] = {}
        self.storages: dict[int, tuple[Any, int]] = {}
        self.skipped: dict[str, int] = {}
        self.has_complex = False  # whether a tensor met so far holds complex numbers
        self.has_shards = False  # whether one is spread over processes
        self.learn: Callable[[Tensor, bool], int] = self._learner()

    def _log(self) -> FlatList:
        return FlatList((), FIELDS)

    def forget(self, tensor: Any) -> None:
        """Forgets this tensor, so that it is read anew when it is next met: its metadata was changed in place."""
        self.known.pop(id(tensor), None)

    def number(self, tensor: Tensor, fresh: bool = False) -> int:
        """Returns the number of a tensor, `fresh` if an op just made it; -1 if its metadata cannot be read."""
        entry = self.known.get(id(tensor))
        if entry is not None:
            held = entry[0]()
            if held is tensor or (held is not None and type(tensor) in self.plain and held is tensor.untyped_storage()):
                return entry[1]
        return self.learn(tensor, fresh) if type(tensor) in self.plain else self.learn_any(tensor, fresh)

    def storage_number(self, storage: torch.UntypedStorage, device: torch.device) -> int:
        """Returns the number of a storage, a new one if it is met for the first time."""
        number = self.find_storage(storage)
        if number is None:
            number = len(self.devices)
            self.storages[id(storage)] = (ref(storage), number)
            self.devices.append(device)
        return number

    def find_storage(self, storage: torch.UntypedStorage) -> int | None:
        """Returns the number of a storage that was met before."""
        entry = self.storages.get(id(storage))
        return entry[1] if entry is not None and entry[0]() is storage else None

    def find(self, tensor: Tensor) -> tuple[int, int] | None:
        """Returns the numbers of a tensor's storage and geometry, if both were met before."""
        try:
            number = self.find_storage(tensor.untyped_storage())
            geometry = (tensor.shape, tensor.stride(), tensor.storage_offset(), tensor.dtype)
        except RuntimeError:  # a parameter without storage: sparse, lazy
            return None
        code = self.geometries.get(geometry)
        return None if number is None or code is None else (number, code)

    def survivors(self) -> dict[int, bool]:
        """Returns whether each tensor that is still alive requires a gradient, by number; parameters left out."""
        held = [(tensor, number) for anchor, number in self.known.values() if (tensor := anchor()) is not None]
        return {number: tensor.requires_grad for tensor, number in held if isinstance(tensor, Tensor)}

    def live_storages(self) -> set[int]:
        """Returns the numbers of the storages that are still in use."""
        return {number for anchor, number in self.storages.values() if anchor() is not None}

    def _learner(self) -> Callable[[Tensor, bool], int]:
        """Returns the hot part as a closure: looking names up on self costs as much as the work."""
        known, storages, records, extend = self.known, self.storages, self.records, self.records.extend
        devices, new_device, geometries, count = self.devices, self.devices.append, self.geometries, len(FIELDS)

        def learn(tensor: Tensor, fresh: bool) -> int:
            """Numbers a tensor of a PLAIN type that is not known yet; -1 if its metadata cannot be read."""
            try:
                storage = tensor.untyped_storage()
                stride = tensor.stride()
            except RuntimeError:  # sparse, nested and other layouts
                return self.learn_any(tensor, fresh)
            # storage_number(), written out.
            entry = storages.get(id(storage))
            if entry is None or entry[0]() is not storage:
                entry = storages[id(storage)] = (ref(storage), len(devices))
                new_device(tensor.device)
            # An op's output is marked by autograd only after it has left the dispatcher: asking is of no use yet.
            requires_grad = False if fresh else tensor.requires_grad
            number = len(records) // count
            geometry = tensor.shape, stride, tensor.storage_offset(), tensor.dtype
            code = geometries.get(geometry)
            if code is None:
                code = geometries[geometry] = len(geometries)
                self.has_complex |= tensor.is_complex()
            extend((fresh, entry[1], code, requires_grad))
            # torch.utils.swap_tensors, which Module.to may use, refuses tensors with weak references: parameters are
            # told apart by a weak reference to their storage instead.
            known[id(tensor)] = (ref(storage) if requires_grad and tensor.is_leaf else ref(tensor), number)
            return number

        return learn

    def learn_any(self, tensor: Tensor, fresh: bool) -> int:
        """Numbers a tensor of any layout and type in the same way."""
        try:
            # A subclass may hook attribute access: its own code must not run because of us.
            with torch._C.DisableTorchFunction():
                record = self._describe(tensor, fresh)
                geometry = (record.shape, record.stride, record.offset, record.dtype)
                code = self.geometries.setdefault(geometry, len(self.geometries))
                self.has_complex |= record.dtype.is_complex
        except Exception as error:  # an exotic tensor must never break the user's step
            reason = f"tensor not described: {type(tensor).__name__} ({type(error).__name__})"
            self.skipped[reason] = self.skipped.get(reason, 0) + 1
            return -1
        number = self.records.add((fresh, record.storage, code, record.requires_grad))
        self.special[number] = (record.device, record.nbytes)
        self.known[id(tensor)] = (ref(tensor), number)
        return number

    def _describe(self, tensor: Tensor, fresh: bool) -> TensorRecord:
        number, stride, offset = -1, None, 0
        held = local_shard(tensor)
        self.has_shards |= held is not tensor
        try:
            storage = held.untyped_storage()
            number = self.storage_number(storage, held.device)
            stride, offset = held.stride(), int(held.storage_offset())
        except RuntimeError:
            pass
        shape, nbytes = _shape_and_bytes(held)
        return TensorRecord(fresh, number, shape, stride, offset, held.dtype, held.device, tensor.requires_grad, nbytes)


def _shape_and_bytes(tensor: Tensor) -> tuple[Any, int]:
    if tensor.layout is torch.strided and not tensor.is_nested:
        return tensor.shape, -1
    # Asking for the parts runs ops, which another recording around this one must not take for the step's.
    with _disable_current_modes():
        return nested_sizes(tensor) if tensor.is_nested else tensor.shape, size_bytes(tensor)


def nested_sizes(tensor: Tensor) -> tuple[Any, ...]:
    """Returns sizes of a nested tensor with None where its pieces differ."""
    pieces = [piece.shape for piece in tensor.unbind()]
    rows = list(zip(*pieces, strict=True))
    return (len(pieces), *(sizes[0] if len(set(sizes)) == 1 else None for sizes in rows))


def size_bytes(tensor: Tensor) -> int:
    """Returns the bytes that a tensor of any layout holds: -1 if its shape tells them, -2 if torch does not tell."""
    parts = list(tensor.unbind()) if tensor.is_nested else sparse_parts(tensor)
    if not parts and not tensor.is_nested:
        return -1 if tensor.layout is torch.strided else -2
    return sum(part.numel() * part.element_size() for part in parts)


def sparse_parts(tensor: Tensor) -> list[Tensor]:
    """Returns the tensors that a sparse one is made of; none of other layouts."""
    if tensor.layout is torch.sparse_coo:
        return [tensor._indices(), tensor._values()]
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        return [tensor.ccol_indices(), tensor.row_indices(), tensor.values()]
    return []
