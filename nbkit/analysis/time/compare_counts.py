"""Compares two frames by how often their rows occur."""

from collections.abc import Sequence

import numpy as np
import pandas as pd


def compare_counts(left: pd.DataFrame, right: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Returns `keys` with left_count and right_count, a row per combination that the frames have unequally often.

    The largest difference stands first; ties keep the order of the frames, the left one first. Null equals null.
    """
    both = pd.concat([left[list(keys)], right[list(keys)]], ignore_index=True)
    codes = both.groupby(list(keys), dropna=False, sort=False).ngroup().to_numpy()
    first = np.unique(codes, return_index=True)[1]
    counts = [np.bincount(part, minlength=len(first)) for part in np.split(codes, [len(left)])]
    counted = both.iloc[first].reset_index(drop=True).assign(left_count=counts[0], right_count=counts[1])
    size = (counted["left_count"] - counted["right_count"]).abs()
    differs = counted[size > 0]
    return differs.loc[size[size > 0].sort_values(ascending=False, kind="stable").index].reset_index(drop=True)
