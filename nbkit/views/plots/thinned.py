"""Thins long lines: more steps than a screen has pixels cannot be seen."""

from itertools import pairwise

import numpy as np

BUCKETS = 200


def seen_rows(values: np.ndarray, buckets: int = BUCKETS, places: np.ndarray | None = None) -> np.ndarray:
    """Returns rows that a chart needs: all of few, else first, smallest, largest and last of each of so many pieces.

    Pieces have as many rows each, or, with `places`, which must not fall, are as wide.
    """
    if len(values) <= 4 * buckets:
        return np.arange(len(values))
    edges = np.linspace(0, len(values), buckets + 1, dtype=np.int64)
    if places is not None:
        bounds = np.linspace(places[0], places[-1], buckets + 1)[1:-1]
        edges = np.array([0, *np.searchsorted(places, bounds).tolist(), len(values)])
    pieces = [(low, values[low:high], high) for low, high in pairwise(edges.tolist()) if high > low]
    rows = [(low, low + piece.argmin(), low + piece.argmax(), high - 1) for low, piece, high in pieces]
    return np.unique(rows)
