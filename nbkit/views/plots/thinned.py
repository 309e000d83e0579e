"""Thins long lines: more steps than a screen has pixels cannot be seen."""

from itertools import pairwise

import numpy as np

BUCKETS = 200


def seen_rows(values: np.ndarray, buckets: int = BUCKETS) -> np.ndarray:
    """Returns rows that a chart needs: all of few, else first, smallest, largest and last of each of so many pieces."""
    if len(values) <= 4 * buckets:
        return np.arange(len(values))
    edges = np.linspace(0, len(values), buckets + 1, dtype=np.int64)
    pieces = [(low, values[low:high], high) for low, high in pairwise(edges.tolist())]
    rows = [(low, low + piece.argmin(), low + piece.argmax(), high - 1) for low, piece, high in pieces]
    return np.unique(rows)
