"""Makes the frame `collectives` of a recording, and fills in group and bytes of these calls in `ops`."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import pandas as pd

from nbkit.capture.distributed.api_calls import ApiCall
from nbkit.capture.distributed.flight_recorder import Entry
from nbkit.capture.distributed.process import Group
from nbkit.capture.raw.source import location_text
from nbkit.ops.collectives import P2P, run_collective_name
from nbkit.ops.scalar_types import item_bytes
from nbkit.schema import COLLECTIVES
from nbkit.timeline.collectives import Calls, collective_calls, functional_waits, innermost, transfers
from nbkit.timeline.events import ABSENT, Ints
from nbkit.timeline.names import ACCUMULATION, BACKWARD_CALLS, BACKWARD_NODE

REPLICATED = "DistributedDataParallel"
COMPLETED = "completed"
PLACES = ("module", "phase", "source")


@dataclass
class Known:
    """Holds what a recording knows beside its frames; times are those of `ops`."""

    entries: list[tuple[float, Entry]]  # of the flight recorder, with their time_us
    calls: list[tuple[float, float, ApiCall]]  # of torch.distributed, with start_us and end_us
    groups: dict[str, Group]  # by name
    rank: int | None
    sees_all: bool  # whether every call of the dispatcher is a row of ops: what is in none ran in another thread
    accumulating: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # op_ids, in AccumulateGrad nodes


def collectives_frame(ops: pd.DataFrame, modules: pd.DataFrame, known: Known) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns the frame, one row a call in order of time, and ops with group and size_bytes of these calls."""
    calls = collective_calls(ops)
    entries: list[Entry | None] = [None] * len(calls.row)
    loose = []
    numbers = calls.of_runs([time for time, _ in known.entries], [entry.run for _, entry in known.entries])
    for (time_us, entry), at in zip(known.entries, numbers, strict=True):
        if at >= 0 and entries[at] is None:
            entries[at] = entry
        else:
            loose.append((time_us, entry, at))
    api = _api_calls(calls, known)
    only = next(iter(known.groups.values())) if len(known.groups) == 1 else None
    rows = [_row(calls, at, entries[at], api[at], known, only) for at in range(len(calls.row))]
    found = transfers(ops, calls, [None if entry is None else entry.run for entry in entries], _groups(rows))
    _add_times(rows, ops, calls, found, api)
    buckets = _add_places(rows, ops, modules, calls, known.accumulating)
    _add_bucket_waits(rows, ops, calls, buckets)
    for row, made in zip(rows, api, strict=True):
        if row["source"] is None and made is not None and made.location is not None:
            row["source"] = location_text(made.location)
    ops = _filled(ops, calls, rows)
    rows += [_loose_row(ops, calls, known, *each) for each in loose]
    rows.sort(key=lambda row: float(row["start_us"]))
    return COLLECTIVES.frame(rows), ops


def _api_calls(calls: Calls, known: Known) -> list[ApiCall | None]:
    """Returns the call of torch.distributed that each is in, where that makes no other."""
    inside: dict[int, list[int]] = {}
    for number, (start_us, end_us, _) in enumerate(known.calls):
        first, last = np.searchsorted(calls.start_us, [start_us, end_us])
        within = [at for at in range(int(first), int(last)) if calls.end_us[at] <= end_us]
        inside[number] = within
    found: list[ApiCall | None] = [None] * len(calls.row)
    for number, within in inside.items():
        if len(within) == 1:
            found[within[0]] = known.calls[number][2]
    return found


def _row(
    calls: Calls, at: int, entry: Entry | None, api: ApiCall | None, known: Known, only: Group | None
) -> dict[str, Any]:
    group = known.groups.get(entry.group_name) if entry is not None else api.group if api is not None else only
    row = _described(entry, group, known.rank)
    if entry is None and api is not None:
        row |= {"input_shapes": _text(api.shapes), "input_dtypes": _text(api.dtypes), "size_bytes": api.size_bytes}
    return row | {
        "op_id": int(calls.top[at]),
        "op": calls.kind[at],
        "is_p2p": calls.kind[at] in P2P,
        "peer": None if api is None else api.peer,
        "start_us": float(calls.start_us[at]),
    }


def _described(entry: Entry | None, group: Group | None, rank: int | None) -> dict[str, Any]:
    """Returns what the flight recorder and the process group tell of a call."""
    row: dict[str, Any] = {"rank": rank, "group": None, "group_ranks": None}
    if group is not None:
        row |= {"group": group.text, "group_ranks": _text(list(group.ranks) or None)}
    if entry is None:
        return row
    return row | {
        "group": row["group"] or entry.group_name,
        "seq": entry.seq,
        "input_shapes": _text(entry.input_shapes),
        "output_shapes": _text(entry.output_shapes),
        "input_dtypes": _text(entry.input_dtypes),
        "output_dtypes": _text(entry.output_dtypes),
        "size_bytes": tensor_bytes(entry.input_shapes, entry.input_dtypes),
        "state": entry.state,
    }


def _loose_row(ops: pd.DataFrame, calls: Calls, known: Known, time_us: float, entry: Entry, at: int) -> dict[str, Any]:
    """Returns the row of a call that is no op of its own: a DTensor's redistribution inside an op, another thread's."""
    op_id = int(calls.top[at]) if at >= 0 else ABSENT if known.sees_all else innermost(ops, time_us)
    row = _described(entry, known.groups.get(entry.group_name), known.rank)
    row |= {"op": run_collective_name(entry.run), "is_p2p": entry.is_p2p, "start_us": time_us}
    if op_id >= 0:
        row |= {"op_id": op_id} | _values(ops, np.array([op_id]), PLACES)[0]
    return row


def _add_times(
    rows: list[dict[str, Any]],
    ops: pd.DataFrame,
    calls: Calls,
    found: Ints,
    api: Sequence[ApiCall | None],
) -> None:
    """Fills in how long each took, and how long its thread waited for it."""
    start, total = ops["start_us"].to_numpy(np.float64), ops["total_time_us"].to_numpy(np.float64)
    waited = functional_waits(ops, calls)
    for at, row in enumerate(rows):
        if found[at] >= 0:
            row["duration_us"] = float(start[found[at]] + total[found[at]] - calls.start_us[at])
        if not np.isnan(waited[at]):
            row["wait_us"] = float(waited[at])
        made = api[at]
        if made is not None and made.waits:
            row["wait_us"] = sum(end - begin for begin, end, _ in made.waits) / 1e3
            _, end, was_over = made.waits[0]
            if found[at] < 0 and not was_over:
                row["duration_us"] = (end - made.start_ns) / 1e3
            if row.get("state") is not None:
                row["state"] = COMPLETED


def _add_places(
    rows: list[dict[str, Any]], ops: pd.DataFrame, modules: pd.DataFrame, calls: Calls, accumulating: Ints
) -> list[int]:
    """Fills in module, phase and line of each; of a bucket that DistributedDataParallel reduces that module.

    Returns which are such buckets.
    """
    replicated = modules.loc[modules["type"].eq(REPLICATED), "module"].dropna().tolist()
    places = _values(ops, calls.top, PLACES)
    chains = [_upward(ops, row) for row in calls.row.tolist()] if replicated else []
    met = np.unique(np.concatenate([np.array(chain, dtype=np.int64) for chain in chains])) if chains else calls.row
    names = dict(zip(met.tolist(), (str(name) for name in ops["op"].iloc[met]), strict=True))
    in_node, buckets = set(accumulating.tolist()), []
    for row, place in zip(rows, places, strict=True):
        row |= place
    for at, chain in enumerate(chains):
        node = next((names[each] for each in chain if names[each].startswith(BACKWARD_NODE)), "")
        if chain[0] in in_node or node == ACCUMULATION:
            under = [path for path in replicated if _is_under(rows[at]["module"], path)]
            rows[at]["module"] = max(under, key=len, default=None)
            passed = [each for each in chain if names[each] in BACKWARD_CALLS]
            rows[at]["source"] = _value(ops["source"].iloc[passed[-1]]) if passed else None
            buckets.append(at)
    return buckets


def _add_bucket_waits(rows: list[dict[str, Any]], ops: pd.DataFrame, calls: Calls, buckets: Sequence[int]) -> None:
    """Fills in how long the thread waited for each bucket: after the last node of the backward pass, one by one.

    DistributedDataParallel waits in C++, where nobody records it. Until a bucket has come no later node runs.
    """
    start, thread = ops["start_us"].to_numpy(np.float64), ops["thread"].to_numpy()
    is_node = ops["op"].str.startswith(BACKWARD_NODE).to_numpy(bool)
    come_us = 0.0
    for at in buckets:
        if "duration_us" not in rows[at] or "wait_us" in rows[at]:
            continue
        began_us, end_us = calls.start_us[at], calls.start_us[at] + rows[at]["duration_us"]
        nodes = np.flatnonzero(is_node & (start < end_us) & (thread == thread[calls.row[at]]))
        passed_us = max(
            (start[nodes] + ops["total_time_us"].to_numpy(np.float64)[nodes]).max(initial=began_us), come_us
        )
        rows[at]["wait_us"] = max(float(end_us - passed_us), 0.0)
        come_us = max(come_us, float(end_us))


def _groups(rows: Sequence[dict[str, Any]]) -> list[object]:
    return [row["group_ranks"] for row in rows]


def _is_under(module: str | None, path: str) -> bool:
    return module is None or not path or module == path or module.startswith(f"{path}.")


def _filled(ops: pd.DataFrame, calls: Calls, rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Returns ops with the group of each call, and its bytes, in all its rows."""
    filled = {}
    for name in ("group", "size_bytes"):
        values: dict[int, Any] = {}
        for row, dispatched, top in zip(rows, calls.row.tolist(), calls.top.tolist(), strict=True):
            if row.get(name) is not None:
                chain = _upward(ops, dispatched)
                values |= dict.fromkeys(chain[: chain.index(top) + 1], row[name])
        column = ops[name].array.copy()
        if values:
            column[np.fromiter(values, dtype=np.int64)] = pd.array([*values.values()], dtype=column.dtype)
        filled[name] = column
    return ops.assign(**filled)


def _upward(ops: pd.DataFrame, op_id: int) -> list[int]:
    """Returns an op and all that it is in, from the inside."""
    parent = ops["parent_id"].array
    chain = [op_id]
    while not pd.isna(above := parent[chain[-1]]):
        chain.append(int(above))
    return chain


def _values(ops: pd.DataFrame, op_ids: Ints, names: Sequence[str]) -> list[dict[str, Any]]:
    """Returns these columns of ops, a dictionary for each of the op_ids; null is None."""
    columns = [[_value(value) for value in ops[name].iloc[op_ids]] for name in names]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def tensor_bytes(shapes: Sequence[Sequence[int]], dtypes: Sequence[str | None]) -> int | None:
    """Returns the bytes of tensors of these shapes and dtypes; None where there are none, or a dtype is not known."""
    sizes = [item_bytes(dtype) if dtype is not None else None for dtype in dtypes]
    if not sizes or None in sizes or len(sizes) != len(shapes):
        return None
    return sum(prod(shape) * size for shape, size in zip(shapes, sizes, strict=True) if size is not None)


def _text(value: Any) -> str | None:
    return None if value is None else json.dumps(value)


def _value(value: Any) -> Any:
    return None if pd.isna(value) else value
