"""Reads torch's flight recorder: the collectives that this process called, numbered as all its peers number them."""

import json
from dataclasses import dataclass
from typing import Any

import torch

from nbkit.capture.distributed.process import is_distributed
from nbkit.ops.scalar_types import dtype_named

# One recorder for what the CPU waits for (gloo, MPI), one for NCCL.
DUMPS = ("_dump_fr_trace_json", "_dump_nccl_trace_json")


@dataclass(frozen=True)
class Entry:
    """Holds one entry of the flight recorder; what it does not know is None."""

    group_name: str
    seq: int | None
    is_p2p: bool
    run: str  # what the backend ran: "gloo:all_reduce"
    input_shapes: list[list[int]]
    output_shapes: list[list[int]]
    input_dtypes: list[str | None]
    output_dtypes: list[str | None]
    created_ns: int  # wall clock, unix ns
    state: str | None


def entries_between(start_ns: int, end_ns: int) -> tuple[list[Entry], bool]:
    """Returns the entries of this process made in a span of the wall clock, unix ns, in order of time.

    Beside them whether it may have forgotten some: it holds the last 2,000 (TORCH_FR_BUFFER_SIZE).
    """
    found: list[Entry] = []
    has_forgotten = False
    for name in DUMPS if is_distributed() else ():
        dump = getattr(torch._C._distributed_c10d, name, None)
        raw = json.loads(dump(True, False)).get("entries", []) if dump is not None else []
        times = [entry["time_created_ns"] for entry in raw]
        has_forgotten |= bool(raw) and min(entry["record_id"] for entry in raw) > 0 and min(times) >= start_ns
        found += [_entry(entry) for entry, time in zip(raw, times, strict=True) if start_ns <= time <= end_ns]
    return sorted(found, key=lambda entry: entry.created_ns), has_forgotten


def _entry(raw: dict[str, Any]) -> Entry:
    is_p2p = bool(raw["is_p2p"])
    number = raw["p2p_seq_id" if is_p2p else "collective_seq_id"]
    shapes = {side: raw[f"{side}_sizes"] for side in ("input", "output")}
    dtypes = {side: [dtype_named(name) for name in raw[f"{side}_dtypes"]] for side in shapes}
    return Entry(
        group_name=str(raw["process_group"][0]),
        seq=int(number) if number else None,  # they count from 1
        is_p2p=is_p2p,
        run=raw["profiling_name"],
        input_shapes=shapes["input"],
        output_shapes=shapes["output"],
        input_dtypes=dtypes["input"],
        output_dtypes=dtypes["output"],
        created_ns=int(raw["time_created_ns"]),
        state=raw["state"],
    )
