"""Turns the trace of a step into that of one of several ranks: sizes of memory that is split, and what is sent."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from nbkit.capture.cost.module_rows import module_costs
from nbkit.capture.cost.storages import GATHERED
from nbkit.schema import MEMORY, STORAGES
from nbkit.trace.trace import Trace

# Numbers of an optimizer that no rank goes without.
COUNTER_BYTES = 8


@dataclass(frozen=True)
class Gathered:
    """Describes memory that a rank holds for a while, from before the first op to after the last one."""

    first: int
    last: int
    size_bytes: int


def of_one_rank(
    trace: Trace,
    sizes: np.ndarray,
    gathered: Sequence[Gathered],
    sent: dict[str, int],
    note: str,
    costs: pd.DataFrame,
) -> Trace:
    """Returns a trace with other sizes of its storages (N,), and memory that is gathered from other ranks.

    `sent` are bytes by measure, `costs` are those of the rank's ops.
    """
    storages = trace.storages.assign(size_bytes=sizes)
    memory = trace.memory.assign(delta_bytes=_deltas(trace.memory, sizes))
    if len(gathered) and len(memory):
        storages, memory = _with_gathered(trace, storages, memory, gathered)
    totals = memory.groupby("device")["delta_bytes"].cumsum().astype("Int64")
    saved = _saved(trace, sizes)
    meta = {**trace.meta, "notes": [*trace.meta["notes"], note]}
    before = trace.meta.get("sent_bytes", {})
    meta["sent_bytes"] = {name: before.get(name, 0) + sent.get(name, 0) for name in before | sent}
    moved = (costs["read_bytes"] + costs["written_bytes"]).replace(0, np.nan)
    costs = costs.assign(intensity=(costs["flops"].astype("Float64") / moved).astype("float64"))
    changed = {
        "storages": storages,
        "memory": memory.assign(allocated_bytes=totals),
        "saved": saved,
        "costs": costs,
        "module_costs": module_costs(trace.modules, costs, saved),
    }
    return Trace({**trace.frames, **changed}, meta)


def _deltas(memory: pd.DataFrame, sizes: np.ndarray) -> np.ndarray:
    deltas: np.ndarray = np.sign(memory["delta_bytes"].to_numpy()) * sizes[memory["allocation_id"].to_numpy(np.int64)]
    return deltas


def _saved(trace: Trace, sizes: np.ndarray) -> pd.DataFrame:
    saved = trace.saved
    whole = np.maximum(trace.storages["size_bytes"].to_numpy(), 1)
    numbers = saved["allocation_id"].to_numpy()
    now = sizes[numbers]
    views = np.ceil(saved["view_bytes"].to_numpy() * (now / whole[numbers])).astype(np.int64)
    return saved.assign(view_bytes=views, storage_bytes=now, new_bytes=np.where(saved["new_bytes"] > 0, now, 0))


def _with_gathered(
    trace: Trace, storages: pd.DataFrame, memory: pd.DataFrame, gathered: Sequence[Gathered]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    ops, count = trace.ops, len(storages)
    device = memory["device"].iloc[memory["allocated_bytes"].argmax()]
    numbers = np.arange(count, count + len(gathered))
    first = np.array([each.first for each in gathered])
    last = np.array([each.last for each in gathered])
    sizes = np.array([each.size_bytes for each in gathered], np.int64)
    more: dict[str, Any] = {
        "allocation_id": numbers,
        "kind": [GATHERED] * len(gathered),
        "size_bytes": sizes,
        "device": [device] * len(gathered),
        "op_id": first,
        **{name: ops[name].iloc[first].array for name in ("op", "module", "phase")},
        "freed_op_id": last,
    }
    starts = ops["start_us"].to_numpy()
    events = {
        "op_id": np.concatenate([last, first]),
        "time_us": starts[np.concatenate([last, first])],
        "device": [device] * 2 * len(gathered),
        "delta_bytes": np.concatenate([-sizes, sizes]),
        "allocation_id": np.concatenate([numbers, numbers]),
    }
    # Before the events of the first op, and after those of the last one; what ends there is gone before what begins.
    order = np.maximum.accumulate(memory["op_id"].fillna(-1).to_numpy(np.int64))
    places = np.concatenate([np.searchsorted(order, last, side="right"), np.searchsorted(order, first)]) - 0.5
    every = np.argsort(np.concatenate([np.arange(len(memory)), places]), kind="stable")
    joined = pd.concat([memory, MEMORY.frame(events)], ignore_index=True).iloc[every].reset_index(drop=True)
    return pd.concat([storages, STORAGES.frame(more)], ignore_index=True), joined
