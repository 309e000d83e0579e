"""Writes dumps as torch's flight recorder of version 2.10 does, call by call."""

import json
import os
import pickle

STARTED_NS, GAP_NS = 1_796_000_000_000_000_000, 1_000_000


def call(op="all_reduce", shape=(4,), line=10, group=("0", "default_pg"), dtype="Float", out=None, **fields):
    """Returns an entry without its numbers."""
    frames = [
        {"name": op, "filename": "/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", "line": 3245},
        {"name": "step", "filename": "/data/me/train.py", "line": line},
    ]
    out = [list(shape)] if out is None else out
    return {
        "frames": frames if line else [], "process_group": group, "profiling_name": f"gloo:{op}", "pg_id": 0,
        "input_sizes": [list(shape)], "input_dtypes": [dtype], "output_sizes": out, "output_dtypes": [dtype],
        "state": "scheduled", "retired": True, "is_p2p": False, "timeout_ms": 4000,
        "time_discovered_started_ns": None, "time_discovered_completed_ns": None, **fields,
    }  # fmt: skip


def dump(calls, drop=0, groups=None, late_ns=0):
    """Returns what a rank dumps that made these calls, whose ring has lost the first `drop`."""
    counts, entries = {}, []
    for number, one in enumerate(calls):
        key = one["process_group"]
        counts[key] = counts.get(key, 0) + (not one.get("in_last", False))
        times = {"time_created_ns": STARTED_NS + number * GAP_NS + late_ns}
        seq = {"collective_seq_id": counts[key], "p2p_seq_id": 0, "op_id": number + 1, "record_id": number}
        entries.append({**one, **times, **seq})
    config = groups or {"": {"name": "", "desc": "", "ranks": "[]"}}
    return {"version": "2.10", "pg_config": config, "comm_lib_version": "", "pg_status": {}, "entries": entries[drop:]}


def write(folder, dumps, at_s=100.0, form="pickle"):
    """Writes the dumps by rank, as made so many seconds after the first call."""
    folder.mkdir(parents=True, exist_ok=True)
    for rank, one in dumps.items():
        file = folder / f"comm_lib_trace_rank_{rank}{'.json' if form == 'json' else ''}"
        file.write_bytes(json.dumps(one).encode() if form == "json" else pickle.dumps(one, protocol=2))
        made = STARTED_NS / 1e9 + at_s
        os.utime(file, (made, made))
    return folder
