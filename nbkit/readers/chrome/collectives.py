"""Makes the frame `collectives` of a Chrome trace, of what NCCL's calls and kernels and gloo's work tell in args."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from nbkit.ops.collectives import P2P, group_text, named_collective
from nbkit.ops.scalar_types import dtype_named
from nbkit.readers.chrome.arguments import collective_bytes, collective_group
from nbkit.readers.chrome.columns import whole
from nbkit.readers.chrome.event_columns import LARGEST
from nbkit.readers.chrome.names import is_collective
from nbkit.schema import COLLECTIVES
from nbkit.timeline.collectives import Calls, collective_calls, transfers
from nbkit.timeline.events import ABSENT, Ints

# Which call of c10d an event belongs to, as ParamCommsUtils and Kineto write it since torch 2.4; "Seq" since 2.5.
RANKS = "Process Group Ranks"
WHOLE_LIST = re.compile(r"\[\s*(?:\d+\s*,\s*)*\d*\s*\]")  # torch shortens those of more than 30: "[0, 1, ..., 63]"


def communication(name: str, args: Mapping[str, Any]) -> str | None:
    """Returns as JSON what an event tells of a collective, in columns of its frame; None if it tells nothing."""
    if "Collective name" in args:
        kind = named_collective(str(args["Collective name"]))
        return None if kind is None else json.dumps(_of_arguments(kind, args))
    if is_collective(name) and isinstance(args.get("Input Dims"), list):
        shapes, dtypes = args["Input Dims"], args.get("Input type")
        known = [dtype_named(word) for word in dtypes] if isinstance(dtypes, list) else None
        size = _number(collective_bytes(name, args))
        return json.dumps({"input_shapes": str(shapes), "input_dtypes": _text(known), "size_bytes": size})
    return None


def _of_arguments(kind: str, args: Mapping[str, Any]) -> dict[str, Any]:
    dtype, is_p2p = dtype_named(args.get("dtype")), kind in P2P
    lengths = {side: _number(args.get(f"{word} msg nelems")) for side, word in (("input", "In"), ("output", "Out"))}
    peer = _number(args.get("Dst Rank" if kind == "send" else "Src Rank")) if is_p2p else None
    ranks, number = str(args.get(RANKS, "")), _number(args.get("Seq"))
    return {
        "op": kind,
        "group": collective_group(args),
        "group_name": args.get("Process Group Name"),
        "group_ranks": _text(json.loads(ranks)) if WHOLE_LIST.fullmatch(ranks) else None,
        "seq": number if number is not None and number > 0 else None,
        "peer": peer if peer is not None and peer >= 0 else None,
        "size_bytes": _number(collective_bytes("", args)),
        # Only how many numbers go in and come out stands there.
        **{f"{side}_shapes": _text([[length]]) for side, length in lengths.items() if length is not None},
        **{f"{side}_dtypes": _text([dtype]) for side in lengths if dtype is not None},
    }


def collectives_frame(ops: pd.DataFrame, told: Sequence[str | None], around: Mapping[str, Any]) -> pd.DataFrame | None:
    """Returns the frame of a trace's ops; None where nothing in the file is of several processes.

    `told` has communication() of each op, `around` is what stands around the events.
    """
    world = around.get("distributedInfo")
    info = world if isinstance(world, dict) else {}
    calls = collective_calls(ops)
    known = {row: json.loads(text) for row, text in enumerate(told) if text is not None}
    if not info and not len(calls.row) and not known:
        return None
    groups = _groups(info)
    ranks = [text for _, text in groups.values()]
    found = transfers(ops, calls, [None] * len(calls.row), [ABSENT if len(ranks) == 1 else at for at in calls.row])
    at_call, loose = _by_call(ops, calls, found, known)
    start, total = ops["start_us"].to_numpy(np.float64), ops["total_time_us"].to_numpy(np.float64)
    rows = []
    for at, kind in enumerate(calls.kind):
        end_us = float(start[found[at]] + total[found[at]]) if found[at] >= 0 else None
        duration_us = None if end_us is None else end_us - float(calls.start_us[at])
        rows.append(_row(at_call.get(at, {}), kind, int(calls.top[at]), float(calls.start_us[at]), duration_us))
    rows += [_row(known[row], None, row, float(start[row]), float(total[row])) for row in loose]
    rows.sort(key=lambda row: float(row["start_us"]))
    op_ids = [row["op_id"] for row in rows]
    for row in rows:
        row |= {"rank": _number(info.get("rank")), **_group_of(row, groups)}
        row.pop("group_name", None)
    places = {name: ops[name].iloc[op_ids].array for name in ("module", "phase", "source")}
    return COLLECTIVES.frame(rows).assign(**places)


def _by_call(
    ops: pd.DataFrame, calls: Calls, found: Ints, known: Mapping[int, dict[str, Any]]
) -> tuple[dict[int, dict[str, Any]], list[int]]:
    """Returns what is told of each call, and the ops that tell of one that is no call of the dispatcher here."""
    parent = ops["parent_id"].to_numpy(np.int64, na_value=-1)
    number = {int(row): at for at, row in enumerate(calls.row)} | {int(row): at for at, row in enumerate(found)}
    of_call: dict[int, dict[str, Any]] = {}
    loose = []
    for row, told in known.items():
        above = row
        while above >= 0 and above not in number:
            above = int(parent[above])
        if above >= 0:
            of_call.setdefault(number[above], {}).update({name: value for name, value in told.items() if value})
        elif "op" in told and not _is_in_known(row, parent, known):
            loose.append(row)
    return of_call, loose


def _is_in_known(row: int, parent: Ints, known: Mapping[int, dict[str, Any]]) -> bool:
    """Returns whether an op is work of another that tells the same: a kernel of its call."""
    above = int(parent[row])
    while above >= 0 and above not in known:
        above = int(parent[above])
    return above >= 0


def _row(
    told: Mapping[str, Any], kind: str | None, op_id: int, start_us: float, duration_us: float | None
) -> dict[str, Any]:
    op = kind or told.get("op")
    return {
        **told,
        "op": op,
        "op_id": op_id,
        "is_p2p": op in P2P,
        "start_us": start_us,
        "duration_us": duration_us,
    }


def _groups(info: Mapping[str, Any]) -> dict[str, tuple[str | None, str | None]]:
    """Returns text and ranks of each process group of the file, by name."""
    listed = info.get("pg_config")
    found = {}
    for group in listed if isinstance(listed, list) else []:
        if isinstance(group, dict) and isinstance(group.get("ranks"), list):
            words = str(group.get("pg_desc") or group.get("pg_name") or "") or None
            found[str(group.get("pg_name"))] = group_text(words, len(group["ranks"])), _text(group["ranks"])
    return found


def _group_of(row: Mapping[str, Any], groups: Mapping[str, tuple[str | None, str | None]]) -> dict[str, Any]:
    """Returns the group of a row: as it tells, else as the file's list has it; of a file with one group that."""
    name = row.get("group_name")
    only = next(iter(groups.values())) if len(groups) == 1 else (None, None)
    text, ranks = groups.get(str(name), (None, None)) if name is not None else only
    return {"group": row.get("group") or text, "group_ranks": row.get("group_ranks") or ranks}


def process_meta(around: Mapping[str, Any], start_ns: int) -> dict[str, Any]:
    """Returns what meta says of one of several processes, of a file whose first event begins at `start_ns`."""
    info, base = around.get("distributedInfo"), around.get("baseTimeNanoseconds")
    if not isinstance(info, dict) or _number(info.get("rank")) is None:
        return {}
    host = around.get("host_name")
    return {
        "rank": _number(info["rank"]),
        "world_size": _number(info.get("world_size")),
        "host": host if isinstance(host, str) else None,
        "started_ns": base + start_ns if isinstance(base, int) else None,
    }


def _text(value: Any) -> str | None:
    return None if value is None else json.dumps(value)


def _number(value: object) -> int | None:
    """Returns an integer; None for what is none, and for one that no number of a rank, call or size can be."""
    number = whole(value)
    return None if number is None or abs(number) > LARGEST else number
