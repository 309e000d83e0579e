"""Measures how far apart two tensors are at least, by the statistics that traces hold of them."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

Floats = npt.NDArray[np.float64]
STATISTICS = ("norm", "mean", "std", "min", "max")
COUNTS = ("inf_count", "nan_count")
NEEDED = [*STATISTICS, *COUNTS, "numel"]


class Distances(NamedTuple):
    """Holds for each pair of tensors the largest relative difference of a statistic, and which one, in words."""

    error: Floats
    what: list[str]


def distances(left: pd.DataFrame, right: pd.DataFrame) -> Distances:
    """Returns differences of norms over the norm, of mean and std over the rms, of min and max over the largest value.

    Two equal tensors have 0, and so have two of which nothing is known; inf where NaN and Inf are not as many, or
    elements. It is a lower bound: other values can have the same statistics. Both frames have the columns NEEDED.
    """
    sides = [{name: side[name].to_numpy(np.float64, na_value=np.nan) for name in NEEDED} for side in (left, right)]
    ones = np.ones(len(left))
    columns = {name: _differences(sides[0][name], sides[1][name], ones) for name in ("numel", *COUNTS)}
    columns = {name: np.where(difference > 0, np.inf, 0.0) for name, difference in columns.items()}
    columns |= {name: _differences(sides[0][name], sides[1][name], scale) for name, scale in _scales(*sides).items()}
    errors, names = np.stack([*columns.values()], axis=1), [*columns]
    what = [
        f"{names[statistic]} {sides[0][names[statistic]][row]:.6g}, there {sides[1][names[statistic]][row]:.6g}"
        if error
        else ""
        for row, (statistic, error) in enumerate(zip(errors.argmax(axis=1), errors.max(axis=1), strict=True))
    ]
    return Distances(errors.max(axis=1), what)


def _scales(left: dict[str, Floats], right: dict[str, Floats]) -> dict[str, Floats]:
    """Returns what each statistic's difference is relative to."""
    norm = np.fmax(left["norm"], right["norm"])
    rms = norm / np.sqrt(np.maximum(left["numel"], 1))
    ends = [np.fmax(np.abs(side["min"]), np.abs(side["max"])) for side in (left, right)]
    extent = np.fmax(*ends)
    return {"norm": norm, "mean": rms, "std": rms, "min": extent, "max": extent}


def _differences(left: Floats, right: Floats, scale: Floats) -> Floats:
    """Returns 0 for equal ones and for two unknown ones; inf where one is unknown."""
    with np.errstate(all="ignore"):
        ratio = np.abs(left - right) / scale
    is_same = (left == right) | (np.isnan(left) & np.isnan(right))
    differences: Floats = np.where(is_same, 0.0, np.where(np.isnan(ratio), np.inf, ratio))
    return differences
