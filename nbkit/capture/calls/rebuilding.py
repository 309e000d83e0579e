"""Makes the tensors and arguments of a recorded call again; what a record says is checked before it is used."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nbkit.capture.calls.collectives import process_group, reduction
from nbkit.capture.calls.encode import NAMED, Items, Lookup, decoded
from nbkit.errors import TraceError, first_line
from nbkit.numerics.precision import Array
from nbkit.trace.calls.layout import Record
from nbkit.trace.captured_values import contiguous, extent

Content = Callable[[object], Array]
# What a record that is not as it was written raises where it is read.
BAD_RECORD = (
    KeyError, IndexError, ValueError, TypeError, AttributeError, RuntimeError, OverflowError, MemoryError,
    AssertionError,  # of a torch that was built without the device
)  # fmt: skip


class BuiltCall:
    """Holds the arguments of a recorded call, made again; raises TraceError where the record cannot be used.

    `device` stands in for the devices of the record, null for their own: for the CPU only where all is on the CPU.
    `inputs` holds the bytes of each storage that the arguments lie in, by its number in the record.
    """

    def __init__(self, record: Record, content: Content, device: torch.device | None = None) -> None:
        self.record, self.content, self.device = record, content, device
        self.inputs: dict[int, Tensor] = {}
        self.results: dict[int, Tensor] = {}
        self._tensors: dict[int, Tensor] = {}
        with refusing("its record cannot be used"):
            self.is_on_cpu = all("device" not in storage for storage in record["storages"])
            generators = [self._generator(entry) for entry in record.get("generators", ())]
            lookup = Lookup(self.argument)
            others: dict[str, Items] = {
                "generator": generators, "device": Lookup(self._place),
                "group": Lookup(process_group), "reduction": Lookup(reduction),
            }  # fmt: skip
            self.args = tuple(decoded(list(record["args"]), lookup, others))
            kwargs = record.get("kwargs", {})
            self.kwargs = {str(name): decoded(value, lookup, others) for name, value in kwargs.items()}
            # Of the generator that the call draws from where it was given none.
            drawn = record.get("generator")
            self.generator = None if drawn is None else self._generator(drawn)
            self.state = dict(record.get("state", {}))

    def argument(self, number: int) -> Tensor:
        """Returns a tensor of the record as it was before the call, the same one for the same number."""
        if number not in self._tensors:
            self._tensors[number] = self._tensor(self.record["tensors"][number], self._input)
        return self._tensors[number]

    def result(self, number: int) -> Tensor:
        """Returns a tensor of the record as it was after the call, on the CPU. Raises TraceError."""
        with refusing("its results cannot be read"):
            return self._tensor(self.record["tensors"][number], self._result)

    def storages_of(self, number: int) -> list[int]:
        """Returns the numbers of the storages that a tensor of the record lies in. Raises TraceError."""
        with refusing("its record cannot be used"):
            entry = self.record["tensors"][number]
            parts = entry.get("parts", ())
            own = [entry["storage"]] if "storage" in entry else []
            return own + [storage for part in parts for storage in self.storages_of(part)]

    def _input(self, number: int) -> Tensor:
        if number not in self.inputs:
            entry = self.record["storages"][number]
            device = self._place(entry.get("device", "cpu"))
            name, size = entry.get("before"), _size(entry["bytes"])
            if name is None:
                self.inputs[number] = torch.empty(size, dtype=torch.uint8, device=device)
            else:
                data = torch.from_numpy(self.content(name))
                # A copy: torch aligns its own memory, and kernels may choose by that.
                self.inputs[number] = torch.empty(len(data), dtype=torch.uint8, device=device).copy_(data)
        return self.inputs[number]

    def _result(self, number: int) -> Tensor:
        if number not in self.results:
            entry = self.record["storages"][number]
            name = entry.get("after", entry.get("before"))
            data = np.empty(0, np.uint8) if name is None else self.content(name)
            self.results[number] = torch.from_numpy(data)
        return self.results[number]

    def _place(self, text: Any) -> torch.device:
        # torch may not know a device that another one stands in for: its plugin is not there.
        is_cpu = str(text).partition(":")[0] == "cpu"
        return torch.device(text) if self.device is None or (is_cpu and not self.is_on_cpu) else self.device

    def _tensor(self, entry: Record, storage_of: Callable[[int], Tensor]) -> Tensor:
        dtype, shape = NAMED["dtype"][entry["dtype"]], [_size(size) for size in entry["shape"]]
        if "zeros" in entry:
            return torch._efficientzerotensor(shape, dtype=dtype, device=self._place(entry["zeros"]))
        if "parts" in entry:
            return self._sparse(entry, [self._tensor(self._part(part), storage_of) for part in entry["parts"]])
        storage = storage_of(_size(entry["storage"]))
        stride = [_size(step) for step in entry["stride"]] if "stride" in entry else [*contiguous(shape)]
        offset = _size(entry.get("offset", 0))
        _check_inside(storage.numel(), dtype, shape, stride, offset)
        tensor = _laid_out(storage, dtype, shape, stride, offset)
        tensor = torch._conj(tensor) if entry.get("conj") is True else tensor
        return torch._neg_view(tensor) if entry.get("neg") is True else tensor

    def _part(self, number: int) -> Record:
        entry: Record = self.record["tensors"][_size(number)]
        if "parts" in entry:
            raise ValueError("a sparse tensor of sparse tensors")
        return entry

    def _sparse(self, entry: Record, parts: list[Tensor]) -> Tensor:
        layout = NAMED["layout"][entry["layout"]]
        if layout is torch.sparse_coo:
            indices, values = parts
            made = torch.sparse_coo_tensor(indices, values, entry["shape"], check_invariants=True)
            return made._coalesced_(entry.get("is_coalesced") is True)
        pointers, others, values = parts
        return torch.sparse_compressed_tensor(
            pointers, others, values, entry["shape"], layout=layout, check_invariants=True
        )

    def _generator(self, entry: Record) -> torch.Generator:
        generator = torch.Generator(torch.device(entry["device"]))
        return generator.set_state(torch.from_numpy(self.content(entry["state"])))


@contextmanager
def refusing(what: str) -> Iterator[None]:
    """Makes a TraceError of what a record that is not as it was written raises."""
    try:
        yield
    except BAD_RECORD as error:
        raise TraceError(f"{what} ({type(error).__name__}: {first_line(error)})") from error


def _laid_out(storage: Tensor, dtype: torch.dtype, shape: list[int], stride: list[int], offset: int) -> Tensor:
    """Returns a tensor in bytes."""
    try:
        made = torch.empty(0, dtype=dtype, device=storage.device)
        return made.set_(storage.untyped_storage(), offset, shape, stride)
    except RuntimeError:  # a device in Python, which has no storages
        whole = storage[: storage.numel() // dtype.itemsize * dtype.itemsize]
        return whole.view(dtype).as_strided(shape, stride, offset)


def _check_inside(count: int, dtype: torch.dtype, shape: list[int], stride: list[int], offset: int) -> None:
    if len(stride) != len(shape):
        raise ValueError(f"{len(stride)} strides for {len(shape)} sizes")
    if prod(shape) and (offset + extent(shape, stride)) * dtype.itemsize > count:
        raise ValueError("a tensor that does not fit in its storage")


def _size(value: Any) -> int:
    """Returns a size, stride, offset or number of the record, once it is one."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{value!r} is no size")
    return value
