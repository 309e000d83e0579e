"""Spans of time in ns, collected one by one in Python and as a whole from the native recorder."""

import numpy as np


class Spans:
    """Start and end of each span; they do not overlap."""

    def __init__(self) -> None:
        self._pairs: list[tuple[int, int]] = []
        self._arrays: list[np.ndarray] = []

    def add(self, start: int, end: int) -> None:
        self._pairs.append((start, end))

    def add_all(self, given: bytes) -> None:
        """int64, start and end of each span after the other."""
        self._arrays.append(np.frombuffer(given, dtype=np.int64).reshape(-1, 2))

    def array(self) -> np.ndarray:
        """(spans, 2), one after the other."""
        pairs = np.array(self._pairs, dtype=np.int64).reshape(-1, 2)
        found: np.ndarray = np.concatenate([pairs, *self._arrays])
        return found[np.argsort(found[:, 0], kind="stable")]
