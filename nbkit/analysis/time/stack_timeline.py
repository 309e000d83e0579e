"""Draws the stacks of a memory snapshot over time, as rows of `ops` that a flame graph can show."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from nbkit.schema import MEMORY, OPS, STACKS, TEXT, nullable

Ints = npt.NDArray[np.int64]
# Of torch itself these only pass a call on.
PASSED_ON = r"(?:^|/)torch/nn/modules/module\.py:\d+$"
MOST_ROWS = 200_000


def stack_timeline(memory: pd.DataFrame, stacks: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Returns a row of `ops` per call in the stacks of successive allocations, and how many are not drawn.

    A stack is drawn from its allocation to the next one on its device: a snapshot knows nothing of the time between,
    so that times are those of allocations, not of functions. Calls that successive stacks have in common are one row.
    Its `size_bytes` is what was allocated there, in the innermost call. Each device has a thread of its own. Of
    very many allocations the smallest are not drawn, so that there are at most 200,000 rows.
    """
    memory, stacks = MEMORY.check(memory), STACKS.check(stacks)
    rows = np.flatnonzero((memory["delta_bytes"] > 0).to_numpy() & memory["stack_id"].notna().to_numpy())
    devices, names = pd.factorize(memory["device"].iloc[rows], sort=True)
    order = np.argsort(devices, kind="stable")
    rows, devices, whole = rows[order], devices[order], len(rows)
    paths = shown_calls(stacks, memory["stack_id"].iloc[rows].to_numpy(np.int64))
    calls = _runs(paths, devices)
    while sum(len(first) for first, _, _ in calls) > MOST_ROWS and len(rows) > 1:
        kept = _largest(memory["delta_bytes"].to_numpy()[rows], len(rows) // 2)
        rows, devices, paths = rows[kept], devices[kept], paths[:, kept]
        calls = _runs(paths, devices)
    start = memory["time_us"].to_numpy(np.float64)[rows]
    end = _ends(start, devices, memory)
    table = _rows(calls, start, end)
    size = np.zeros(len(table))
    np.add.at(size, _innermost(table, len(rows)), memory["delta_bytes"].to_numpy(np.float64)[rows])
    return _ops(table, stacks, size.astype(np.int64), devices, names), whole - len(rows)


def _largest(size: Ints, count: int) -> Ints:
    """Returns where the largest `count` values are, in order; of equal ones as many from each part of the time."""
    least = np.partition(size, len(size) - count)[len(size) - count]
    above, equal = np.flatnonzero(size > least), np.flatnonzero(size == least)
    missing = count - len(above)
    return np.sort(np.concatenate([above, equal[np.arange(missing) * len(equal) // missing]]))


def shown_calls(stacks: pd.DataFrame, ids: Ints) -> npt.NDArray[np.int64]:
    """Returns the calls of each stack that are worth a box, from the outermost inwards, -1 beyond its end.

    `ids` are innermost calls; the result has a row per depth and a column per stack. Calls of torch that only pass a
    call on are left out, and native code in a stack that has Python code, too.
    """
    parent = stacks["parent_id"].to_numpy(np.int64, na_value=-1)
    source = stacks["source"]
    is_shown = source.notna().to_numpy(bool) & ~source.str.contains(PASSED_ON, na=False).to_numpy(bool)
    is_python = source.str.contains(r"(?:\.py|>):\d+$", na=False).to_numpy(bool)
    different, of = np.unique(ids, return_inverse=True)
    levels = []
    node = different.copy()
    while (node >= 0).any():
        levels.append(node)
        node = np.where(node >= 0, parent[node], -1)
    whole = np.array(levels, np.int64).reshape(len(levels), len(different))[
        ::-1
    ]  # the outermost at the bottom of a column
    has_python = ((whole >= 0) & is_python[whole]).any(axis=0)
    keep = (whole >= 0) & is_shown[whole] & (is_python[whole] | ~has_python)
    # Those that are kept move outwards, in their order.
    moved = np.argsort(~keep, axis=0, kind="stable")
    packed = np.where(np.take_along_axis(keep, moved, 0), np.take_along_axis(whole, moved, 0), -1)
    return packed[: int(keep.sum(axis=0).max(initial=0))][:, of]


def _runs(paths: npt.NDArray[np.int64], devices: Ints) -> list[tuple[Ints, Ints, Ints]]:
    """Returns per depth the first and last position of each call, and its stack_id."""
    calls = []
    is_new = np.ones(paths.shape[1], bool)
    is_new[1:] = devices[1:] != devices[:-1]
    for level in paths:
        is_new[1:] |= level[1:] != level[:-1]
        first = np.flatnonzero(is_new)
        last = np.append(first[1:], len(level)) - 1
        is_there = level[first] >= 0
        calls.append((first[is_there], last[is_there], level[first[is_there]]))
    return calls


def _ends(start: npt.NDArray[np.float64], devices: Ints, memory: pd.DataFrame) -> npt.NDArray[np.float64]:
    """Returns when the next allocation of the device comes; of the last one when the last event does."""
    end = np.append(start[1:], 0.0)[: len(start)]
    last = np.append(devices[1:] != devices[:-1], True)[: len(start)]
    end[last] = max(float(memory["time_us"].max()), 0.0) if len(memory) else 0.0
    later: npt.NDArray[np.float64] = np.maximum(end, start)
    return later


def _rows(
    calls: list[tuple[Ints, Ints, Ints]], start: npt.NDArray[np.float64], end: npt.NDArray[np.float64]
) -> pd.DataFrame:
    """Returns the calls in order of time, callers first: first, last, depth, stack_id, parent, start_us, total_us."""
    parts = [
        pd.DataFrame({"first": first, "last": last, "depth": depth, "stack_id": stack})
        for depth, (first, last, stack) in enumerate(calls)
    ]
    empty = pd.DataFrame({name: np.zeros(0, np.int64) for name in ("first", "last", "depth", "stack_id")})
    table = pd.concat([empty, *parts], ignore_index=True)
    table = table.iloc[np.lexsort((table["depth"], table["first"]))].reset_index(drop=True)
    table["parent"] = _parents(table, len(calls))
    table["start_us"] = start[table["first"]]
    table["total_us"] = end[table["last"]] - table["start_us"]
    inside = np.zeros(len(table) + 1)
    np.add.at(inside, table["parent"].to_numpy(), table["total_us"].to_numpy())
    table["self_us"] = np.maximum(table["total_us"] - inside[:-1], 0.0)
    return table


def _parents(table: pd.DataFrame, depths: int) -> Ints:
    """Returns the call one level up that began last; -1 at the top."""
    depth, parent = table["depth"].to_numpy(), np.full(len(table), -1, np.int64)
    latest = np.full(len(table), -1, np.int64)
    for level in range(1, depths):
        above = np.flatnonzero(depth == level - 1)
        here = np.flatnonzero(depth == level)
        latest[here] = above[np.searchsorted(above, here) - 1]
        parent[here] = latest[here]
    return parent


def _innermost(table: pd.DataFrame, count: int) -> Ints:
    """Returns the innermost call of each allocation."""
    found = np.zeros(count, np.int64)
    for _, level in table.groupby("depth", sort=True):
        lengths = (level["last"] - level["first"] + 1).to_numpy()
        starts = level["first"].to_numpy()
        inside = np.repeat(starts - np.cumsum(lengths) + lengths, lengths) + np.arange(int(lengths.sum()))
        found[inside] = np.repeat(level.index.to_numpy(), lengths)
    return found


def _ops(table: pd.DataFrame, stacks: pd.DataFrame, size: Ints, devices: Ints, names: pd.Index) -> pd.DataFrame:
    call = stacks.iloc[table["stack_id"].to_numpy()]
    device = devices[table["first"].to_numpy()] if len(table) else np.zeros(0, np.int64)
    return OPS.frame(
        {
            "op_id": np.arange(len(table)),
            "parent_id": nullable(table["parent"].to_numpy()),
            "level": pd.array(["range"], dtype=TEXT).take(np.zeros(len(table), np.int64)),
            "op": call["function"].array,
            "module": call["module"].array,
            "phase": call["phase"].array,
            "step": np.zeros(len(table), np.int64),
            "device": pd.array(names.tolist(), dtype=TEXT).take(device),
            "thread": device.astype(np.int64),
            "start_us": table["start_us"].to_numpy(),
            "total_time_us": table["total_us"].to_numpy(),
            "self_time_us": table["self_us"].to_numpy(),
            "size_bytes": nullable(np.where(size > 0, size, -1)),
            "source": call["source"].array,
        }
    )
