"""Keeps values of results as long as they fit into a number of bytes."""

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.generic]
KEPT_BYTES = 1 << 30


class Values:
    """Holds arrays by result_id, none of which is written to again; what does not fit is left out and counted."""

    def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
        self._kept_bytes, self._held = kept_bytes, 0
        self._arrays: dict[int, Array] = {}
        self._first: dict[int, int] = {}
        self.left_out = 0

    def put(self, result_id: int, value: Array, *, is_own: bool = False) -> None:
        """Keeps a copy of a value, unless that would be too much; the value itself if nothing else will write to it."""
        if self._held + value.nbytes > self._kept_bytes:
            self.left_out += 1
            return
        is_kept = is_own and value.flags.c_contiguous
        kept = value.view() if is_kept else np.array(value, copy=True, order="C")
        kept.setflags(write=False)
        self._arrays[result_id] = kept
        self._held += kept.nbytes

    def put_same(self, result_id: int, source: int, shape: tuple[int, ...]) -> None:
        """Keeps for a result what is kept of another one with the same elements in the same order."""
        self._arrays[result_id] = self._arrays[source].reshape(shape)
        self._first[result_id] = self.first(source)

    def first(self, result_id: int) -> int:
        """Returns the first result whose elements, in the same order, are kept for this one, too: mostly itself."""
        return self._first.get(result_id, result_id)

    def get(self, result_id: int) -> Array | None:
        """Returns the value of a result; null where it is not kept."""
        return self._arrays.get(result_id)
