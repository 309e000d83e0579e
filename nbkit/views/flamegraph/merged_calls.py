"""Merges equal call paths: rows of one kind inside the same frame become one frame."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from nbkit.timeline.nesting import depth_levels

Ints = npt.NDArray[np.int64]


def merged_calls(parent: Ints, kinds: Ints) -> tuple[Ints, Ints]:
    """Returns the frame of each row, and for each frame the one that holds it: a smaller number, -1 at the top.

    `parent` is the row that holds each row, an earlier one, -1 at the top; `kinds` tells rows of one frame apart.
    """
    kinds, different = pd.factorize(kinds)
    span = max(len(different), 1)
    merged, above = np.zeros(len(parent), np.int64), [np.empty(0, np.int64)]
    n_frames = 0
    for rows in depth_levels(parent):
        holder = np.where(parent[rows] < 0, -1, merged[parent[rows]])
        codes, keys = pd.factorize((holder + 1) * span + kinds[rows])
        merged[rows] = n_frames + codes
        above.append(np.asarray(keys) // span - 1)
        n_frames += len(keys)
    return merged, np.concatenate(above)
