"""Follows the memory of tensors, from the op that makes it to the moment that nothing holds it any more."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import ref

from torch import Tensor, UntypedStorage

from nbkit.schema.cost import STORAGE_KINDS

PARAMETER, BUFFER, INPUT, STATE, GRADIENT, GATHERED, ACTIVATION, TEMPORARY = STORAGE_KINDS
NO_MEMORY = -1  # the number of what was not met, or has no memory of its own
BEFORE = -1  # the place of what was there when the recording began


@dataclass(slots=True)
class Storage:
    """Describes one memory: what it is for, the op that made it, and the last op before it was freed."""

    number: int
    kind: str
    nbytes: int
    device: str
    made: int
    freed: int | None = None


class Watched(ref[UntypedStorage]):
    """Tells when a memory is gone, and holds what is known of it until then: one object in place of five."""

    __slots__ = ("held", "key")
    held: Storage
    key: int


class Storages:
    """Holds every memory that a step has met, and the events of its allocation and release in their order.

    An event is (place, storage, sign); a place is a slot of the recording's ops. Weak references tell when a memory is
    gone: it has one Python object, which all tensors on it share.
    """

    def __init__(self, place: Callable[[], int]) -> None:
        self.place = place
        self.all: list[Storage] = []
        self.events: list[tuple[int, int, int]] = []
        self.known: dict[int, Watched] = {}  # by the id of its storage, as long as that is there
        self.merged: tuple[Storage, Any] | None = None
        self.on_gone: Callable[[int], None] = lambda number: None  # is told of a memory that is gone

    def find(self, storage: UntypedStorage) -> Storage | None:
        """Returns what is known of a memory; None if it was not met."""
        entry = self.known.get(id(storage))
        return None if entry is None else entry.held

    def number_at(self, memory: int) -> int:
        """Returns the number of a memory by the id of its storage; NO_MEMORY if it was not met."""
        entry = self.known.get(memory)
        return NO_MEMORY if entry is None else entry.held.number

    def of(self, tensor: Tensor) -> Storage | None:
        """Returns the memory of a tensor; None if it was not met, or the tensor's layout has none of its own."""
        try:
            return self.find(tensor.untyped_storage())
        except RuntimeError:
            return None

    def made(self, tensor: Tensor, kind: str = TEMPORARY, place: int | None = None) -> Storage | None:
        """Returns the memory of a tensor, which is new if it was not met; None where the layout has none of its own."""
        try:
            storage = tensor.untyped_storage()
        except RuntimeError:
            return None
        if (known := self.find(storage)) is not None:
            return known
        place = self.place() if place is None else place
        new = Storage(len(self.all), kind, storage.nbytes(), str(tensor.device), place)
        self.all.append(new)
        self.events.append((place, new.number, 1))
        self._follow(storage, new, self._gone)
        return new

    def stands_for(self, fake: Tensor, held: Storage) -> None:
        """Takes the memory of a fake tensor for that of the real one."""
        self._follow(fake.untyped_storage(), held, self._unknown)

    def merge(self, tensor: Tensor) -> None:
        """Takes a memory for freed by the op that runs, which a step without modes would write into it."""
        held = self.of(tensor)
        if held is not None and held.freed is None and held.kind == TEMPORARY:
            self.merged = held, ref(tensor.untyped_storage())
            self._free(held)

    def settle_merge(self) -> None:
        """Takes a merge back whose memory is still there when the next op begins."""
        if self.merged is None:
            return
        (held, alive), self.merged = self.merged, None
        if alive() is not None:
            self.events = [event for event in self.events if event[1:] != (held.number, -1)]
            held.freed = None

    def _follow(self, storage: UntypedStorage, held: Storage, on_gone: Callable[[Any], None]) -> None:
        watched = self.known[id(storage)] = Watched(storage, on_gone)
        watched.held, watched.key = held, id(storage)

    def _unknown(self, watched: Watched) -> None:
        if self.known.get(watched.key) is watched:
            del self.known[watched.key]

    def _gone(self, watched: Watched) -> None:
        self._unknown(watched)
        self.on_gone(watched.held.number)
        if watched.held.freed is None:
            self._free(watched.held)

    def _free(self, held: Storage) -> None:
        held.freed = self.place()
        self.events.append((held.freed, held.number, -1))

    def forget(self) -> None:
        """Lets go of all references."""
        self.known.clear()
        self.on_gone = lambda number: None
        self.merged = None
