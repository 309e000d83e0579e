"""Predicts the time of a call from calls that were measured: between the sizes, at the rate of the nearest products."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from nbkit.devices.families import measured_for
from nbkit.errors import OptionError

# A product takes the rate of so many calls that are nearest in FLOPs and in FLOPs per byte.
NEAREST = 3
# How much more FLOPs per byte count in the distance of two products than FLOPs: thin ones are slow at any size.
INTENSITY_WEIGHT = 2.0
Floats = npt.NDArray[np.float64]


class MeasuredCalls:
    """Holds the measured calls of a device, by op and dtype."""

    def __init__(self, calls: pd.DataFrame) -> None:
        if not len(calls):
            raise OptionError("No call was measured; run nbkit.calibrate() without a limit of bytes.")
        self.calls = calls.sort_values(["moved_bytes", "time_us"], kind="stable", ignore_index=True)
        self.by_op: dict[Any, Any] = self.calls.groupby(["op", "dtype"], sort=False).indices
        self.measured = {str(op) for op in calls["op"].unique()}

    def times_us(self, costs: pd.DataFrame) -> Floats:
        """Returns the time of each row of `costs` as if called alone, in microseconds."""
        moved = (costs["read_bytes"] + costs["written_bytes"]).to_numpy(np.float64)
        flops = costs["flops"].to_numpy(np.float64, na_value=0.0)
        dtypes = costs["dtype"].fillna("float32")
        times = np.zeros(len(costs))
        numbers, kinds = pd.factorize(pd.MultiIndex.from_arrays([costs["op"], dtypes, moved > 0]))
        for number, (op, dtype, is_moving) in enumerate(kinds):
            at = np.flatnonzero(numbers == number)
            calls, scale = self._calls(measured_for(op, is_moving, self.measured), dtype)
            is_product = (flops[at] > 0) & bool((calls["flops"] > 0).any())
            times[at] = np.where(is_product, _by_rate(calls, flops[at], moved[at]), _by_bytes(calls, moved[at] * scale))
        return times

    def _calls(self, op: str, dtype: str) -> tuple[pd.DataFrame, float]:
        """Returns the calls that stand for an op in a dtype, and what its bytes are multiplied by to be theirs."""
        for known in dict.fromkeys((dtype, "float32", *(of for _, of in self.by_op))):
            for name in (op, "aten.add"):
                if (places := self.by_op.get((name, known))) is not None and (known != dtype or name == op):
                    return self.calls.iloc[places], element_bytes(known) / element_bytes(dtype)
        return self.calls, 1.0


def element_bytes(dtype: str) -> float:
    """Returns the bytes of an element of a dtype; 4 for one without a number in its name."""
    if dtype == "bool" or dtype.startswith("float8"):
        return 1.0
    digits = "".join(filter(str.isdigit, dtype.partition("_")[0]))
    return int(digits) / 8 if digits else 4.0


def _by_bytes(calls: pd.DataFrame, moved: Floats) -> Floats:
    """Returns the time between those of the next smaller and larger call; beyond the largest at its rate."""
    means = calls.groupby("moved_bytes")["time_us"].mean()
    sizes, times = means.index.to_numpy(np.float64), means.to_numpy(np.float64)
    between = np.interp(moved, sizes, times)
    growth = np.maximum(moved / sizes[-1], 1.0) if sizes[-1] > 0 else 1.0  # a view takes as long whatever its size
    return np.asarray(between * growth, np.float64)


def _by_rate(calls: pd.DataFrame, flops: Floats, moved: Floats) -> Floats:
    """Returns FLOPs over the rate of the nearest measured products, those nearer counting more."""
    known = calls[calls["flops"] > 0]
    if not len(known):
        return np.zeros(len(flops))
    at = _coordinates(known["flops"].to_numpy(np.float64), known["moved_bytes"].to_numpy(np.float64))
    rates = np.log(known["flops"].to_numpy(np.float64) / known["time_us"].to_numpy(np.float64))
    wanted = _coordinates(np.maximum(flops, 1), moved)
    distances = ((wanted[:, None, :] - at[None, :, :]) ** 2).sum(axis=2)
    nearest = np.argsort(distances, axis=1)[:, :NEAREST]
    weights = 1 / (np.take_along_axis(distances, nearest, 1) + 1e-3)
    rate = np.exp((weights * rates[nearest]).sum(axis=1) / weights.sum(axis=1))
    return np.asarray(np.maximum(flops / rate, known["time_us"].min()), np.float64)


def _coordinates(flops: Floats, moved: Floats) -> Floats:
    return np.stack([np.log(flops), INTENSITY_WEIGHT * np.log(flops / np.maximum(moved, 1))], axis=1)
