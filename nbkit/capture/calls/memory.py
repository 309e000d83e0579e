"""Reads the memory of tensors as bytes, and knows which of it is in the folder already, so that it is stored once."""

from collections.abc import Callable
from typing import Any, NamedTuple
from weakref import ref
from zlib import crc32

import numpy as np
import torch
from torch import Tensor

from nbkit.capture.calls.encode import NotCapturedError
from nbkit.capture.raw.tensor_registry import PLAIN, sparse_parts
from nbkit.numerics.precision import Array
from nbkit.trace.calls.writing import CallWriter
from nbkit.trace.captured_values import extent

# Kernels may choose by the alignment of an address, up to a line of the cache.
ALIGNMENT = 64
# A storage of more bytes than this, and of more than this many times what a call uses of it, is stored in part.
SMALL, MOST_UNUSED = 64 * 1024, 4
# Of a larger one it is not worth the time to find out whether it is as it was.
MOST_CHECKED = 64
# Below this size a content is written anew and compared, which takes no longer than its checksum.
TINY = 4096

# Names a content that need not be stored, by the address and size of its storage and its bytes; None for all else.
Reference = Callable[[int, int, Array], str | None]
Span = tuple[int, int]  # first byte in a storage, and number of bytes


class Memory(NamedTuple):
    """Holds a storage as it can be read, the device that it counts as being on, and what tells it from others."""

    storage: Any  # a torch.UntypedStorage, or the library's HeldStorage
    device: torch.device
    key: int

    @property
    def size_bytes(self) -> int:
        return int(self.storage.nbytes())

    def read(self, span: Span) -> Array:
        """Returns bytes of it, in its own memory where that is on the CPU."""
        start, count = span
        if not count:
            return np.empty(0, np.uint8)
        if self.storage.device.type == "cpu":
            return np.asarray(_Bytes(self.storage, start, count))
        view = torch.empty(0, dtype=torch.uint8, device=self.storage.device)
        view.set_(self.storage)
        data: Array = view[start : start + count].cpu().numpy()
        return data


class _Bytes:
    """Shows numpy the memory of a storage. Tensor.numpy() would, too, but forbids torch to resize it afterwards."""

    def __init__(self, storage: Any, start: int, count: int) -> None:
        self.storage = storage
        address = storage.data_ptr() + start
        self.__array_interface__ = {"data": (address, True), "shape": (count,), "typestr": "|u1", "version": 3}


def memory_of(tensor: Tensor, held: Callable[[Tensor], Any] | None = None) -> Memory:
    """Returns the memory of a dense tensor; of one that wraps another one (a device in Python) that of the inner one.

    `held` makes what stands for its storage. Raises NotCapturedError if it has none of its own.
    """
    inner = tensor
    if type(tensor) not in PLAIN and hasattr(tensor, "__tensor_flatten__"):
        names, _ = tensor.__tensor_flatten__()
        if len(names) != 1:
            raise NotCapturedError(f"it has tensors of type {type(tensor).__name__}")
        inner = getattr(tensor, names[0])
    try:
        if held is not None:
            storage = held(inner)
            key = storage.key
        else:
            storage = inner.untyped_storage()
            key = id(storage)
        if storage.data_ptr() or not storage.nbytes():
            return Memory(storage, tensor.device, key)
    except RuntimeError:
        pass
    raise NotCapturedError(f"it has tensors without memory of their own ({tensor.layout})".replace("torch.", ""))


def span_of(tensor: Tensor) -> Span:
    """Returns what a dense tensor spans of its storage, from an aligned byte on."""
    if not tensor.numel():
        return 0, 0
    size, first = tensor.element_size(), int(tensor.storage_offset()) * tensor.element_size()
    start = first - first % ALIGNMENT
    return start, first + int(extent(tensor.shape, tensor.stride())) * size - start


class KnownContents:
    """Names the contents of storages; `put` stores what is new. One that no op has written to is not stored again.

    Of large memory a checksum is taken each time: what writes to it without an op (numpy, another thread) is seen as
    well. `reference` returns the name of what need not be stored, null for all else.
    """

    def __init__(self, put: Callable[[Array], str], reference: Reference | None = None) -> None:
        self.put, self.reference = put, reference
        # By what tells a storage from others: the storage, and by span name and checksum.
        self.known: dict[int, tuple[Any, dict[Span, tuple[str, int]]]] = {}

    def name(self, memory: Memory, span: Span) -> str:
        """Returns the name of what the storage holds now."""
        data = memory.read(span)
        if len(data) <= TINY:
            return self._referenced(memory, data) or self.put(data)
        entry = self._entry(memory)
        known, checksum = entry.get(span), crc32(data.data)
        if known is None or known[1] != checksum:
            known = entry[span] = self._referenced(memory, data) or self.put(data), checksum
        return known[0]

    def is_whole_known(self, memory: Memory) -> bool:
        """Returns whether the whole content is stored, as it is now."""
        span = (0, memory.size_bytes)
        known = self._entry(memory).get(span)
        return known is not None and known[1] == crc32(memory.read(span).data)

    def __bool__(self) -> bool:
        """Returns whether any is stored."""
        return bool(self.known)

    def memory(self, tensor: Tensor) -> Memory:
        """Returns memory_of() a tensor."""
        return memory_of(tensor)

    def changed(self, memory: Memory) -> None:
        """Notes that an op writes to a memory."""
        self.known.pop(memory.key, None)

    def best_span(self, memory: Memory, used: Span, *, is_whole: bool) -> Span:
        """Returns what is stored of a storage of which a call uses a part."""
        size = memory.size_bytes
        if is_whole or size <= SMALL or size <= MOST_UNUSED * used[1]:
            return 0, size
        is_checked = size <= MOST_CHECKED * used[1]
        return (0, size) if is_checked and self.is_whole_known(memory) else used

    def _referenced(self, memory: Memory, data: Array) -> str | None:
        return self.reference and self.reference(memory.storage.data_ptr(), memory.size_bytes, data)

    def _entry(self, memory: Memory) -> dict[Span, tuple[str, int]]:
        held = self.known.get(memory.key)
        if held is None or held[0]() is not memory.storage:
            held = self.known[memory.key] = (ref(memory.storage), {})
        return held[1]


class NativeContents(KnownContents):
    """Has the contents of storages named by the library (nbkit/capture/native/src/calls/contents.h)."""

    def __init__(self, native: Any, writer: CallWriter, reference: Reference | None) -> None:
        def named(address: int, size: int, data: memoryview) -> str | None:
            return None if reference is None else reference(address, size, np.frombuffer(data, np.uint8))

        self.held = native.HeldStorage
        self.native = native.Contents(writer, None if reference is None else named)
        super().__init__(self.native.put, reference)

    def memory(self, tensor: Tensor) -> Memory:
        return memory_of(tensor, self.held)

    def name(self, memory: Memory, span: Span) -> str:
        name: str = self.native.name(memory.storage, *span)
        return name

    def changed(self, memory: Memory) -> None:
        self.native.changed(memory.storage)

    def is_whole_known(self, memory: Memory) -> bool:
        return bool(self.native.is_whole_known(memory.storage))

    def __bool__(self) -> bool:
        return len(self.native) > 0


def union(spans: list[Span]) -> Span:
    """Returns the span that holds all of them; empty ones do not count."""
    spans = [span for span in spans if span[1]]
    if not spans:
        return 0, 0
    start = min(start for start, _ in spans)
    return start, max(first + count for first, count in spans) - start


def layout_parts(tensor: Tensor) -> list[Tensor]:
    """Returns the tensors that a sparse one is made of. Raises NotCapturedError for other layouts."""
    if parts := sparse_parts(tensor):
        return parts
    raise NotCapturedError(f"it has tensors of the layout {tensor.layout}".replace("torch.", ""))


def state_bytes(generator: torch.Generator) -> Array:
    """Returns the state of a generator."""
    return np.asarray(generator.get_state().cpu().numpy(), np.uint8)
