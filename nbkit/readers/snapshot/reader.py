"""Reads memory snapshots of torch.cuda as a Trace: events, the stacks that led to them, and the allocator's blocks."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from nbkit import units
from nbkit.errors import TraceError
from nbkit.findings.finding import Finding, findings_frame, rule
from nbkit.readers.reader import Head, Reader
from nbkit.readers.snapshot.cleaning import MOST_DEVICES, cleaned
from nbkit.readers.snapshot.events import (
    Blocks,
    Events,
    Ints,
    SnapshotError,
    blocks_of,
    events_of,
    total_sizes,
    unknown_actions,
)
from nbkit.readers.snapshot.history import History, OutOfMemory
from nbkit.readers.snapshot.plain_pickle import EXPECTED, load_plain
from nbkit.readers.snapshot.stacks import Stacks
from nbkit.trace.gc_paused import gc_paused
from nbkit.trace.trace import Trace

SUFFIXES = (".pickle", ".pkl")
SEGMENTS, TRACES = "segments", "device_traces"
ODD = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError)
# Settings of the allocator that meta has at most.
MOST_SETTINGS = 100


def looks_like(head: Head) -> bool:
    """Returns whether a file is a pickle, or has the name of one: it is damaged if it does not begin so."""
    data = head.unpacked
    is_pickle = len(data) > 1 and data[0] == 0x80 and 2 <= data[1] <= 5
    return is_pickle or head.name.removesuffix(".gz").endswith(SUFFIXES)


def read_memory_snapshot(path: str | Path) -> Trace:
    """Returns the frames memory, stacks and blocks of a snapshot, and findings of requests that failed.

    The file is what torch.cuda.memory._dump_snapshot() wrote, or a pickle of torch.cuda.memory._snapshot(), of
    protocol 2 to 5, gzipped or not. Only plain data are read: nothing in the file can run. Raises TraceError if it is
    absent, cut off, damaged or of another kind.
    """
    path = Path(path)
    with gc_paused():
        segments, events, blocks, stacks, settings, lost = _read(path)
    history = History(events, blocks, segments, stacks.stack_id)
    table = stacks.table()
    frames = {"memory": history.memory(), "stacks": table, "blocks": history.blocks()}
    if failed := history.out_of_memory():
        frames["findings"] = findings_frame(out_of_memory(failed, table))
    meta = _meta(path, events, history, stacks, settings)
    return Trace(frames, {**meta, "notes": [*meta["notes"], *lost]})


Read = tuple[tuple[Ints, Ints], Events, Blocks, Stacks]


def _read(path: Path) -> tuple[tuple[Ints, Ints], Events, Blocks, Stacks, dict[str, Any], list[str]]:
    """Returns sizes of segments, events, blocks, stacks, settings and notes on what is lost; lets go of the data."""
    data = _checked(path, load_plain(path))
    segments, traces = data[SEGMENTS], data.get(TRACES) or []
    settings = _settings(data.get("allocator_settings"))
    try:
        return *_columns(segments, traces), settings, _unknown(traces)
    # Whatever is of another type than torch writes.
    except (SnapshotError, *ODD) as first:
        segments, traces, lost = cleaned(segments, traces)
        try:
            if any(segment["blocks"] for segment in segments) or (any(traces) and not data[SEGMENTS]):
                return *_columns(segments, traces), settings, [*lost, *_unknown(traces)]
            error: Exception = first
        except (SnapshotError, *ODD) as second:
            error = second
        kind = "" if isinstance(error, SnapshotError) else f"{type(error).__name__}, "
        raise _no_snapshot(path, f"{kind}{error}") from error


def _columns(segments: Any, traces: Any) -> Read:
    sizes, events, blocks = total_sizes(segments), events_of(traces), blocks_of(segments)
    if len(traces) > MOST_DEVICES or not ((sizes[0] >= 0) & (sizes[0] < MOST_DEVICES)).all():
        raise SnapshotError(f"it has more than {MOST_DEVICES:,} devices, or one below 0")
    stacks = Stacks([*events.stacks, *blocks.stacks])
    # A million events take hundreds of megabytes, which the frames can have.
    events.stacks.clear()
    blocks.stacks.clear()
    return sizes, events, blocks, stacks


def _unknown(traces: Any) -> list[str]:
    found = unknown_actions(traces)
    names = ", ".join(repr(action[:40]) for action, _ in found.most_common(3))
    return [f"{units.counted(found.total(), 'event')} of unknown actions ({names}) left out."] if found else []


def _no_snapshot(path: Path, reason: str) -> TraceError:
    return TraceError(f"{path} is no memory snapshot as torch writes it: {reason}; {EXPECTED}.")


def _checked(path: Path, data: Any) -> dict[str, Any]:
    if isinstance(data, list) and data and all(isinstance(one, dict) and "blocks" in one for one in data):
        return {SEGMENTS: data}  # what torch.cuda.memory_snapshot() gives
    if not isinstance(data, dict) or not isinstance(data.get(SEGMENTS), list):
        raise TraceError(f"{path} is a pickle of a {type(data).__name__}, but has no {SEGMENTS!r}; {EXPECTED}.")
    return data


def _meta(path: Path, events: Events, history: History, stacks: Stacks, settings: dict[str, Any]) -> dict[str, Any]:
    before = {f"cuda:{number}": size for number, size in enumerate(history.base_bytes.tolist())}
    return {
        "verb": "load",
        "name": path.name,
        "created": _created(history.start_us),
        "source": "torch.cuda memory snapshot",
        "complete": True,
        "error": None,
        "versions": {},
        "devices": history.used_devices,
        "notes": _notes(events, history, stacks),
        "snapshot": {
            "events": events.count,
            "allocated_before_bytes": {device: before[device] for device in history.used_devices},
            "allocator_settings": settings,
        },
    }


def _created(start_us: int | None) -> str | None:
    """Returns when the first event was, if the clock of the file is that of the calendar."""
    try:
        return datetime.fromtimestamp(start_us / 1e6, UTC).isoformat() if start_us and start_us > 1e15 else None
    except (OverflowError, ValueError, OSError):
        return None


def _settings(settings: Any) -> dict[str, Any]:
    """Returns the settings of the allocator that are texts and numbers."""
    if not isinstance(settings, Mapping):
        return {}
    plain = {name: value for name, value in settings.items() if isinstance(name, str) and _is_scalar(value)}
    return dict(list(plain.items())[:MOST_SETTINGS])


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _notes(events: Events, history: History, stacks: Stacks) -> list[str]:
    notes = []
    if not events.count:
        notes.append(
            "The snapshot has no events: call torch.cuda.memory._record_memory_history() before the step to have them."
        )
    elif events.time_us is None and len(events.kind):
        notes.append("The snapshot has no times: times here count the events of a device, one per microsecond.")
    for device, size in enumerate(history.mismatch_bytes.tolist()):
        if size:
            notes.append(
                f"Events and segments of cuda:{device} contradict each other by {units.data_size(size)}; some kinds of "
                "events were not recorded, or recording was paused."
            )
    if stacks.is_cut:
        notes.append("The snapshot has too many different stacks; the innermost calls of some are left out.")
    return notes


@rule("error", verbs=("load",))
def out_of_memory(failed: list[OutOfMemory], stacks: pd.DataFrame) -> list[Finding]:
    """A request to the allocator failed, in a [memory snapshot](guides/memory_snapshots.md).

    Each line and device has one finding, about the first of them.
    """
    places: dict[tuple[str | None, ...], list[OutOfMemory]] = {}
    for one in failed:
        row: Mapping[Any, Any] = stacks.iloc[one.stack_id].to_dict() if one.stack_id >= 0 else {}
        place = [_text(row.get(name)) for name in ("user_line", "module", "phase")]
        places.setdefault((*place, one.device), []).append(one)
    return [_finding(several, *place[:3]) for place, several in places.items()]


def _finding(several: list[OutOfMemory], line: str | None, module: str | None, phase: str | None) -> Finding:
    """Words a request that failed, and says whether as much memory was free."""
    failed = several[0]
    reserved = failed.reserved_bytes
    cached = 0 if reserved is None else reserved - failed.allocated_bytes
    size, free = units.data_size(failed.size_bytes), failed.free_bytes
    kept = "" if reserved is None else f", {units.data_size(cached)} reserved and free"
    left = "" if free is None else f", {units.data_size(free)} were left on the device"
    is_in_pieces = cached >= failed.size_bytes
    return out_of_memory.finding(
        message=f"a request of {size} on {failed.device} failed after {units.duration(failed.time_us)}: "
        f"{units.data_size(failed.allocated_bytes)} were allocated{kept}{left}",
        advice="As much was free, but in no block that fits: try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."
        if is_in_pieces
        else "Free what holds most at the peak, or make the batch smaller.",
        module=module,
        phase=phase,
        source=line,
        count=len(several),
        evidence={
            "requested_bytes": failed.size_bytes,
            "free_bytes": failed.free_bytes,
            "allocated_bytes": failed.allocated_bytes,
            "reserved_bytes": failed.reserved_bytes,
            "time_us": failed.time_us,
        },
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


SNAPSHOT = Reader("a memory snapshot of torch.cuda", read_memory_snapshot, of_bytes=looks_like)
