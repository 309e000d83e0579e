"""Says what devices did: busy and idle time per stream, delay from launch to start of kernels, calls that wait."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from nbkit.analysis.time.gaps import is_synchronising, merged
from nbkit.schema import OPS, TEXT, nullable
from nbkit.timeline.nesting import depth_levels, inherited

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def device_use(ops: pd.DataFrame) -> pd.DataFrame:
    """Returns busy and idle time per device (stream null: all its streams together), then per stream of it.

    Columns: device, stream, kernels, busy_us (union of the kernels' times), idle_us, busy_fraction, idle_fraction.
    Idle and the fractions are of the time from the first start to the last end of all rows, host and device.
    """
    kernels = _kernels(ops)
    end = OPS.check(ops)["start_us"] + ops["total_time_us"]
    span_us = float(end.max() - ops["start_us"].min()) if len(ops) else 0.0
    rows: list[tuple[str, object, int, float]] = []
    for device, work in kernels.groupby("device", sort=True):
        rows.append((str(device), None, len(work), _busy(work)))
        rows += [(str(device), stream, len(part), _busy(part)) for stream, part in work.groupby("stream", sort=True)]
    table = pd.DataFrame(rows, columns=["device", "stream", "kernels", "busy_us"])
    table = table.astype({"device": TEXT, "stream": "Int64", "kernels": "int64", "busy_us": "float64"})
    busy = table["busy_us"] / span_us if span_us else table["busy_us"]
    return table.assign(idle_us=span_us - table["busy_us"], busy_fraction=busy, idle_fraction=1.0 - busy)


def launch_delays(ops: pd.DataFrame) -> pd.DataFrame:
    """Returns one row per kernel with a known launch, in order of launch.

    Columns: op_id and kernel (its name), launch_op_id, op_id_above and op (the innermost aten op around the launch,
    null outside any), model, module, phase, device, stream, launch_us (start of the launch call), delay_us (from there
    to the kernel's start), queue_depth (kernels of the stream launched before it and unfinished at launch_us).
    """
    kernels = _kernels(ops)
    is_launch = np.append((ops["level"] == "runtime").to_numpy(bool), False)  # the last entry answers for -1
    kernels = kernels[is_launch[kernels["parent_id"].to_numpy(np.int64, na_value=-1)]]
    launch = kernels["parent_id"].to_numpy(np.int64)
    above = _nearest(ops, (ops["level"] == "aten").to_numpy(bool))[launch]
    launch_us = ops["start_us"].to_numpy()[launch]
    columns = {
        "op_id": kernels["op_id"].to_numpy(),
        "kernel": kernels["op"].array,
        "launch_op_id": launch,
        "op_id_above": nullable(above),
        "op": _taken(ops["op"], above),
        **{name: kernels[name].array for name in ("model", "module", "phase", "device", "stream")},
        "launch_us": launch_us,
        "delay_us": kernels["start_us"].to_numpy() - launch_us,
    }
    table = pd.DataFrame(columns).assign(end_us=(kernels["start_us"] + kernels["total_time_us"]).to_numpy())
    table = table.sort_values("launch_us", kind="stable", ignore_index=True)
    return table.assign(queue_depth=_queue_depths(table)).drop(columns="end_us")


def synchronising_calls(ops: pd.DataFrame) -> pd.DataFrame:
    """Returns the runtime calls that wait for a device, longest first.

    Columns: op_id, call (cudaStreamSynchronize, ...), op_id_above and op (the outermost aten op around it, such as
    aten.item.default; null where Python calls it itself), model, module, phase, source (of the call, else of that op),
    thread, start_us, total_time_us.
    """
    rows = np.flatnonzero(is_synchronising(OPS.check(ops)))
    above = _outermost(ops, (ops["level"] == "aten").to_numpy(bool))[rows]
    calls = ops.iloc[rows].reset_index(drop=True)
    columns = {
        "op_id": calls["op_id"],
        "call": calls["op"],
        "op_id_above": nullable(above),
        "op": _taken(ops["op"], above),
        **{name: calls[name] for name in ("model", "module", "phase")},
        "source": calls["source"].fillna(pd.Series(_taken(ops["source"], above))),
        **{name: calls[name] for name in ("thread", "start_us", "total_time_us")},
    }
    return pd.DataFrame(columns).sort_values("total_time_us", ascending=False, kind="stable", ignore_index=True)


def _kernels(ops: pd.DataFrame) -> pd.DataFrame:
    return ops[OPS.check(ops)["level"] == "kernel"]


def _busy(work: pd.DataFrame) -> float:
    start = work["start_us"].to_numpy()
    begin, end = merged(start, start + work["total_time_us"].to_numpy())
    return float((end - begin).sum())


def _queue_depths(table: pd.DataFrame) -> Ints:
    """Counts per kernel, in order of launch, the earlier ones of its stream that had not ended at its launch."""
    depth = np.zeros(len(table), np.int64)
    for rows in table.groupby(["device", "stream"], dropna=False).indices.values():
        ends = np.sort(table["end_us"].to_numpy()[rows])
        ended = np.searchsorted(ends, table["launch_us"].to_numpy()[rows], side="right")
        depth[rows] = np.maximum(np.arange(len(rows)) - ended, 0)
    return depth


def _nearest(ops: pd.DataFrame, wanted: npt.NDArray[np.bool_]) -> Ints:
    """Returns per row the nearest wanted one of itself and those around it; -1 if there is none."""
    parent = ops["parent_id"].to_numpy(np.int64, na_value=-1)
    return inherited(parent, depth_levels(parent), wanted)


def _outermost(ops: pd.DataFrame, wanted: npt.NDArray[np.bool_]) -> Ints:
    """Returns per row the outermost wanted one of itself and those around it; -1 if there is none."""
    parent = ops["parent_id"].to_numpy(np.int64, na_value=-1)
    around = np.append(_nearest(ops, wanted), -1)[parent]  # the last entry answers for -1
    return _nearest(ops, wanted & (around < 0))


def _taken(values: pd.Series, rows: Ints) -> pd.api.extensions.ExtensionArray:
    """Returns the texts at these rows, null at -1."""
    taken: pd.api.extensions.ExtensionArray = values.array.take(rows, allow_fill=True)
    return taken
