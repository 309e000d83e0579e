"""Says how near an op comes to what the device can do, where its FLOPs are known."""

from collections.abc import Mapping
from math import nan, prod
from typing import Any

import numpy as np
import pandas as pd

from nbkit.devices.measured_calls import element_bytes as dtype_bytes
from nbkit.errors import OptionError
from nbkit.ops.families import ATTENTION_KERNELS, MATRIX_PRODUCTS, gradients_of
from nbkit.ops.names import packet_of
from nbkit.schema import OPS, TENSORS, TEXT
from nbkit.step.decode import arguments_of, inputs_in
from nbkit.trace.checks import is_number

CALL = ["op", "input_shapes", "input_dtypes", "arguments", "flops"]
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

    size_bytes counts each input and output once, the least that must move. It is known from `tensors` (of an optrace);
    of matrix products, convolutions and attention from the shapes and dtypes of their inputs (optime with shapes), or
    with `element_bytes` for all elements; else it is null, and so is all that needs it. The roof at an intensity is
    min(peak_flops, intensity * peak_bandwidth), in FLOP/s and bytes/s; without bytes or bandwidth it is peak_flops, and
    `bound` is null. After Williams, Waterman and Patterson, "Roofline", CACM 52(4), 2009. Raises OptionError for a peak
    or a size that is no number above 0.
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
    calls = ops.loc[is_known, ["op_id", *CALL]].reset_index(drop=True)
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
    kinds = calls[CALL].drop_duplicates()
    moved = [_size(element_bytes, *call) for call in kinds.itertuples(index=False, name=None)]
    return calls.merge(kinds.assign(size_bytes=np.array(moved, np.float64)), how="left", on=CALL)["size_bytes"]


def _size(element: int | None, op: str, inputs: object, dtypes: object, arguments: object, flops: float) -> float:
    """Returns bytes of the inputs and outputs of a call; NaN where they do not follow from the shapes."""
    shapes = inputs_in(inputs) or []
    names = inputs_in(dtypes) or [None] * len(shapes)
    known = [(shape, name) for shape, name in zip(shapes, names, strict=True) if shape]
    sizes = [element or (dtype_bytes(name) if name else nan) for _, name in known]
    tensors = [shape for shape, _ in known]
    if any(isinstance(size, list) for shape in tensors for size in shape):  # a list of tensors
        return nan
    given = arguments_of(arguments)
    written = _written(packet_of(op), tensors, given, flops)
    read = sum(prod(shape) * size for shape, size in zip(tensors, sizes, strict=True))
    return float(read + written * (sizes or [nan])[0])


def _written(op: str, inputs: list[list[int]], arguments: Mapping[str, Any], flops: float) -> float:
    """Returns elements of the outputs of a product, convolution or attention; NaN for other ops."""
    if op in MATRIX_PRODUCTS and len(inputs) >= 2:
        return float(prod(inputs[-2][:-1]) * inputs[-1][-1])
    if op == "convolution" and len(inputs) >= 2 and not arguments.get("transposed", True):
        return flops / (2 * prod(inputs[1][1:]))  # 2 x multiply-adds of one element are those of a filter
    if op == "convolution_backward" and len(inputs) == 3 and "output_mask" in arguments:
        of = [*map(prod, inputs[1:]), sum(arguments.get("bias_sizes") or [0])]
        return float(sum(size for size, is_made in zip(of, arguments["output_mask"], strict=True) if is_made))
    if op in ATTENTION_KERNELS and len(inputs) >= 3:
        return float(prod(inputs[0][:-1]) * (inputs[2][-1] + 1))  # the result, and the sum of each row
    is_gradient = op in gradients_of("ATTENTION_KERNELS") and len(inputs) >= 4
    return float(sum(map(prod, inputs[1:4]))) if is_gradient else nan


def _with_roof(table: pd.DataFrame, peak_flops: float | None, peak_bandwidth: float | None) -> pd.DataFrame:
    compute = np.full(len(table), np.nan if peak_flops is None else peak_flops)
    memory = table["intensity"].to_numpy() * (np.nan if peak_bandwidth is None else peak_bandwidth)
    is_known = ~np.isnan(compute) & ~np.isnan(memory)
    bound = pd.Series(np.where(memory < compute, "memory", "compute"), dtype=TEXT).where(is_known)
    roof = np.fmin(compute, memory)
    return table.assign(roof_fraction=table["flops_per_second"] / roof, bound=bound)
