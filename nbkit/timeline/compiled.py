"""Finds the regions of torch.compile whose fused kernels are no rows, so that the regions' self time is theirs."""

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from nbkit.timeline.names import COMPILED_REGION, FUSED_KERNEL
from nbkit.timeline.nesting import depth_levels, subtree_sums

Flags = npt.NDArray[np.bool_]


def hides_kernels(ops: pd.DataFrame, parent: npt.NDArray[np.int64]) -> Flags:
    """Returns which rows are a compiled region inside of which no kernel, and no launch of one, is a row.

    `parent` is the row around each row, -1 at the top.
    """
    is_region = (ops["level"] == "range").to_numpy(bool) & _named(ops["op"], COMPILED_REGION)
    if not is_region.any():
        return is_region
    is_shown = ops["level"].isin(["runtime", "kernel"]).to_numpy(bool) | _named(ops["op"], FUSED_KERNEL)
    shown = subtree_sums(parent, depth_levels(parent), is_shown.astype(np.float64))
    return np.asarray(is_region & (shown == 0))


def has_hidden_kernels(ops: pd.DataFrame) -> bool:
    """Returns whether one of all rows of a timeline is such a region."""
    return bool(hides_kernels(ops, ops["parent_id"].to_numpy(np.int64, na_value=-1)).any())


def _named(names: pd.Series, pattern: re.Pattern[str]) -> Flags:
    # Asked of each different name once; Arrow's regular expressions are not Python's.
    fitting: Sequence[str] = [name for name in names.dropna().unique() if pattern.fullmatch(name)]
    return names.isin(fitting).to_numpy(bool)
