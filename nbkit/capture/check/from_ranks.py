"""Tells which of the tensors that came in with NaN or Inf a recorded collective wrote, from other processes."""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from nbkit.capture.check.hidden import Held
from nbkit.capture.replay.op_traits import COLLECTIVES
from nbkit.ops.collectives import collective_of

# They wait for a collective, or wrap what it gives.
PASSING = ("wait_", "_wrap_")


def written_by_ranks(
    bad: pd.DataFrame, ops: pd.DataFrame, tensors: pd.DataFrame, held: Sequence[Held]
) -> dict[int, str | None]:
    """Returns by row of `bad` what wrote a tensor that came in: 'was written by all_reduce at train.py:7, from ...'.

    Null is what this process has spoiled itself, which is told where that begins.
    """
    is_collective = ops["op"].str.split(".").str[0].isin(COLLECTIVES).to_numpy(dtype=bool)
    if not is_collective.any() or not (bad["kind"] == "input").any():
        return {}
    calls = tensors[is_collective[tensors["op_id"].to_numpy()]]
    calls = calls.assign(name=ops["op"].iloc[calls["op_id"]].str.split(".").str[1].to_numpy())
    known = tensors[tensors["role"] == "input"].set_index(["op_id", "position"])["storage_id"]
    found: dict[int, str | None] = {}
    for row, (kind, op_id, position) in enumerate(zip(bad["kind"], bad["op_id"], bad["position"], strict=True)):
        if kind != "input":
            continue
        call = next(_writers(op_id, known.get((op_id, position)), calls, ops), None)
        if call is not None:
            is_made, is_bad = _given_here(call, bad, tensors, held)
            whose = "other ranks' values" if is_made else "the values of its ranks"
            found[row] = None if is_bad else f"was written by {_name(ops, call)}, from {whose}"
    return found


def _writers(op_id: int, storage: object, calls: pd.DataFrame, ops: pd.DataFrame) -> Iterator[int]:
    """Yields the last collective before an op that gave the memory it read, then the one that it is a part of."""
    is_written = (calls["role"] == "output") | calls["name"].str.startswith("recv")
    wrote = calls[is_written & (calls["storage_id"] == storage) & (calls["op_id"] < op_id)]
    if len(wrote) and wrote["name"].iloc[-1].startswith(PASSING):
        last = int(wrote["op_id"].iloc[-1])
        read = calls[(calls["op_id"] == last) & (calls["role"] == "input")]["storage_id"].iloc[0]
        yield from _writers(last, read, calls, ops)
    yield from wrote["op_id"].tolist()[-1:]
    parent = ops["parent_id"].iloc[op_id]
    if not pd.isna(parent) and any(word in str(ops["op"].iloc[int(parent)]) for word in ("distributed", "c10d")):
        within = calls["op_id"].unique()
        of_call = (ops["parent_id"].iloc[within] == parent).to_numpy(dtype=bool, na_value=False)
        yield from within[of_call].tolist()[:1]  # its threads copy before or behind it


def _given_here(call: int, bad: pd.DataFrame, tensors: pd.DataFrame, held: Sequence[Held]) -> tuple[bool, bool]:
    """Returns whether recorded ops made all that this process gave, and whether some of it was not finite."""
    given = set(tensors[(tensors["op_id"] == call) & (tensors["role"] == "input")]["storage_id"].dropna())
    before = tensors[(tensors["op_id"] < call) & tensors["storage_id"].isin(given)]
    # A view of what came in is not made here.
    made = before[(before["role"] == "output") & ~before.duplicated(["op_id", "storage_id"], keep=False)]
    begun = bad["op_id"][(bad["kind"] != "input") & (bad["op_id"] < call)].tolist()
    is_bad = bool(begun) and np.isin(made["op_id"], [each.op for each in held] + begun).any()
    return given <= set(made["storage_id"]), bool(is_bad)


def _name(ops: pd.DataFrame, call: int) -> str:
    name = collective_of(str(ops["op"].iloc[call]).split(".")[1])
    lines = (ops[column].iloc[call] for column in ("own_source", "source"))
    line = next((line for line in lines if isinstance(line, str)), None)
    return name if line is None else f"{name} at {line}"
