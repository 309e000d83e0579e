"""Says how near an op comes to what the device can do, where its FLOPs are known."""

import json
from math import prod

import numpy as np
import pandas as pd

from nbkit.errors import OptionError
from nbkit.schema import OPS, TENSORS, TEXT
from nbkit.trace.checks import is_number

# Products of two matrices, the last two inputs: their output's shape follows from those of the inputs.
PRODUCTS = ("aten.mm", "aten.bmm", "aten.addmm", "aten.baddbmm")
SUMS = ["calls", "time_us", "flops", "size_bytes"]


def roofline(
    ops: pd.DataFrame,
    tensors: pd.DataFrame | None = None,
    *,
    peak_flops: float | None = None,
    peak_bandwidth: float | None = None,
    element_bytes: int | None = None,
) -> pd.DataFrame:
    """Returns per op and input shapes of known FLOPs, most time first, what it achieved and how near to the roof.

    Columns: op, input_shapes, clock (device: time of its kernels; host: from call to return), calls, time_us, flops,
    size_bytes, flops_per_second, bytes_per_second, intensity (FLOPs per byte), roof_fraction, bound {compute, memory}.

    size_bytes counts each input and output once, the least that must move. It is known from `tensors` (of an optrace),
    or, if all their elements have `element_bytes`, from the input shapes of matrix products; else it is null, and so is
    all that needs it. The roof at an intensity is min(peak_flops, intensity * peak_bandwidth), in FLOP/s and bytes/s;
    without bytes or bandwidth it is peak_flops, and `bound` is null. After Williams, Waterman and Patterson,
    "Roofline", CACM 52(4), 2009. Raises OptionError for a peak or a size that is no number above 0.
    """
    limits = {"peak_flops": peak_flops, "peak_bandwidth": peak_bandwidth, "element_bytes": element_bytes}
    for name, value in limits.items():
        if value is not None and not (is_number(value) and value > 0):
            raise OptionError(
                f"{name} must be a number above 0, got {value!r}; give one, or None where it is not known."
            )
    calls = _calls_of_known_flops(ops)
    calls["size_bytes"] = _sizes(calls, tensors, element_bytes)
    names = ["op", "input_shapes", "clock"]
    # One call of unknown size makes the group's unknown.
    groups = calls.assign(calls=1.0).groupby(names, dropna=False, sort=False)
    table = groups[SUMS].sum().where(groups[SUMS].count().eq(groups.size(), axis=0)).reset_index()
    table = table.astype({"calls": "int64", "flops": "int64", "size_bytes": "float64"})
    seconds = table["time_us"].where(table["time_us"] > 0) / 1e6
    table["flops_per_second"] = table["flops"] / seconds
    table["bytes_per_second"] = table["size_bytes"] / seconds
    table["intensity"] = table["flops"] / table["size_bytes"].where(table["size_bytes"] > 0)
    table = table.sort_values("time_us", ascending=False, kind="stable", ignore_index=True)
    return _with_roof(table, peak_flops, peak_bandwidth)


def _calls_of_known_flops(ops: pd.DataFrame) -> pd.DataFrame:
    is_known = (OPS.check(ops)["flops"].notna() & (ops["level"] != "kernel")).to_numpy(bool)
    calls = ops.loc[is_known, ["op_id", "op", "input_shapes", "flops"]].reset_index(drop=True)
    on_device = ops.loc[is_known, "total_device_time_us"].to_numpy(np.float64)
    is_device = np.nan_to_num(on_device) > 0
    calls["clock"] = pd.array(np.where(is_device, "device", "host"), dtype=TEXT)
    calls["time_us"] = np.where(is_device, on_device, ops.loc[is_known, "total_time_us"].to_numpy())
    return calls.astype({"flops": "float64"})


def _sizes(calls: pd.DataFrame, tensors: pd.DataFrame | None, element_bytes: int | None) -> pd.Series:
    """Returns bytes of the inputs and outputs of each call; null where not known."""
    if tensors is not None and len(TENSORS.check(tensors)):
        near = tensors[tensors["op_id"].isin(calls["op_id"])].drop_duplicates(["op_id", "role", "tensor_id"])
        sizes = near.groupby("op_id")["size_bytes"].sum(min_count=1)
        return calls["op_id"].map(sizes).astype("float64")
    if element_bytes is None:
        return pd.Series(np.nan, index=calls.index)
    kinds = calls[["op", "input_shapes"]].drop_duplicates()
    elements = [_elements(op, shapes) for op, shapes in zip(kinds["op"], kinds["input_shapes"], strict=True)]
    known = kinds.assign(size_bytes=np.array(elements, np.float64) * element_bytes)
    return calls.merge(known, how="left", on=["op", "input_shapes"])["size_bytes"]


def _elements(op: str, shapes: object) -> float:
    """Returns elements of the inputs and the output of a matrix product; NaN for other ops."""
    if not isinstance(shapes, str) or ".".join(op.split(".")[:2]) not in PRODUCTS:
        return float("nan")
    inputs = [shape for shape in json.loads(shapes) if shape]
    if len(inputs) < 2:
        return float("nan")
    left, right = inputs[-2:]
    return float(sum(map(prod, inputs)) + prod(left[:-1]) * right[-1])


def _with_roof(table: pd.DataFrame, peak_flops: float | None, peak_bandwidth: float | None) -> pd.DataFrame:
    compute = np.full(len(table), np.nan if peak_flops is None else peak_flops)
    memory = table["intensity"].to_numpy() * (np.nan if peak_bandwidth is None else peak_bandwidth)
    is_known = ~np.isnan(compute) & ~np.isnan(memory)
    bound = pd.Series(np.where(memory < compute, "memory", "compute"), dtype=TEXT).where(is_known)
    roof = np.fmin(compute, memory)
    return table.assign(roof_fraction=table["flops_per_second"] / roof, bound=bound)
