"""Tells the rows of the data set that a DataLoader gave last: torch draws them before it reads the data."""

from collections import deque
from typing import Any
from weakref import WeakKeyDictionary

from torch.utils.data.dataloader import _BaseDataLoaderIter

from nbkit.capture.raw.patching import Patch


class LoaderBatches:
    """Notes the indices of each batch, while installed; those of an IterableDataset are not known."""

    def __init__(self) -> None:
        self.drawn = Patch(_BaseDataLoaderIter, "_next_index")
        self.given = Patch(_BaseDataLoaderIter, "__next__")
        # Workers fetch ahead: batches come in the order in which their indices were drawn.
        self.waiting: WeakKeyDictionary[Any, deque[Any]] = WeakKeyDictionary()
        self.latest: list[int] | None = None

    def install(self) -> None:
        drawn, given, waiting = self.drawn, self.given, self.waiting

        def draw(iterator: Any) -> Any:
            indices = drawn.before(iterator)
            waiting.setdefault(iterator, deque()).append(indices)
            return indices

        def give(iterator: Any) -> Any:
            batch = given.before(iterator)
            indices = queue.popleft() if (queue := waiting.get(iterator)) else None
            # Those of workers that stay are not drawn anew in order after a loop that was left.
            is_ordered = getattr(iterator, "_in_order", True) and not getattr(iterator, "_persistent_workers", False)
            self.latest = _indices(indices) if is_ordered else None
            return batch

        drawn.install(draw)
        given.install(give)

    def remove(self) -> None:
        self.given.remove()
        self.drawn.remove()
        self.waiting.clear()
        self.latest = None

    def take(self) -> list[int]:
        """Returns the indices of the batch that was given last; of each batch once."""
        latest, self.latest = self.latest, None
        return latest or []


def _indices(drawn: Any) -> list[int] | None:
    listed = list(drawn) if isinstance(drawn, list | tuple) else [drawn]
    return listed if all(isinstance(index, int) for index in listed) else None
