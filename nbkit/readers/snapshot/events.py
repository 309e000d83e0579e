"""Makes columns of the events and blocks of a snapshot, which are dicts in lists."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, repeat
from operator import index, itemgetter, methodcaller
from typing import Any

import numpy as np
import numpy.typing as npt

from nbkit.readers.text_file import encodable

Ints = npt.NDArray[np.int64]
Item = Mapping[str, Any]
ALLOC, FREE, FREE_COMPLETED, RESERVE, RELEASE, OOM, OTHER = range(7)
# "free" is how torch 2.0 named the one event of a free.
ACTIONS = {
    "alloc": ALLOC,
    "free_requested": FREE,
    "free_completed": FREE_COMPLETED,
    "free": FREE_COMPLETED,
    "segment_alloc": RESERVE,
    "segment_map": RESERVE,
    "segment_free": RELEASE,
    "segment_unmap": RELEASE,
    "oom": OOM,
}
# Their sizes added up must fit 64 bits.
MOST_BYTES = float(1 << 62)
HIGHEST = (1 << 63) - 1
# What else torch records, of which no frame has rows.
OTHER_ACTIONS = frozenset(("snapshot", "workspace_snapshot", "user_defined"))


class SnapshotError(Exception):
    """The data are not as torch writes them; the text says where."""


@dataclass(frozen=True)
class Events:
    """Holds the events that count, device by device in the order of the file; `stacks` are their lists of frames.

    `kind` is ALLOC, FREE, RESERVE, RELEASE or OOM. `time_us` is null where the snapshot has no times. `free_bytes` is
    what the device had left where a request failed, else -1.
    """

    kind: npt.NDArray[np.int8]
    device: Ints
    time_us: Ints | None
    address: Ints
    size_bytes: Ints
    stream: Ints
    free_bytes: Ints
    stacks: list[Sequence[Item]]
    count: int


@dataclass(frozen=True)
class Blocks:
    """Holds the blocks of all segments in the order of the file; `stacks` are their lists of frames."""

    device: Ints
    stream: Ints
    segment_address: Ints
    address: Ints
    size_bytes: Ints
    requested_bytes: Ints
    state: list[str]
    stacks: list[Sequence[Item]]


def events_of(traces: Sequence[Sequence[Item]]) -> Events:
    """Returns the events of all devices. Raises SnapshotError, or what Python raises on values of another type."""
    _check_different(traces, "device_traces")
    kinds = [_kinds(events) for events in traces]
    # A block is allocated no more once its free is requested; where that was not recorded, once it is completed.
    spare = FREE_COMPLETED if any((kind == FREE).any() for kind in kinds) else FREE
    kept = [(kind != OTHER) & (kind != spare) for kind in kinds]
    items = [event for events, keep in zip(traces, kept, strict=True) for event in compress(events, keep.tolist())]
    kind = np.concatenate([np.zeros(0, np.int8), *(kind[keep] for kind, keep in zip(kinds, kept, strict=True))])
    kind[kind == FREE_COMPLETED] = FREE
    has_times = any("time_us" in event for event in items[:2])
    return Events(
        kind,
        np.repeat(np.arange(len(traces)), [int(keep.sum()) for keep in kept]),
        _integers(map(itemgetter("time_us"), items), len(items)) if has_times else None,
        _addresses(map(methodcaller("get", "addr", -1), items), len(items)),
        _sizes(map(itemgetter("size"), items), len(items)),
        _optional(items, "stream"),
        _optional(items, "device_free"),
        _stacks(map(methodcaller("get", "frames"), items)),
        sum(map(len, traces)),
    )


def blocks_of(segments: Sequence[Item]) -> Blocks:
    """Returns the blocks of all segments. Raises as `events_of()` does."""
    lists = [segment["blocks"] for segment in segments]
    _check_different(segments, "segments")
    _check_different(lists, "segments")
    blocks = [block for segment in lists for block in segment]
    counts = [len(segment) for segment in lists]
    size = _sizes(map(itemgetter("size"), blocks), len(blocks))
    start = _addresses(map(itemgetter("address"), segments), len(segments))
    device = _optional(segments, "device", 0)
    _check_once(device, start, "segments")
    given = _addresses(map(methodcaller("get", "address", -1), blocks), len(blocks))
    of_list = np.repeat(np.arange(len(counts)), counts)
    _check_once(of_list[given >= 0], given[given >= 0], "blocks")
    states = [block["state"] for block in blocks]
    _check_texts(states)
    states = list(map(encodable, states))
    of_segment = np.repeat(start, counts)
    return Blocks(
        np.repeat(device, counts),
        np.repeat(_optional(segments, "stream", 0), counts),
        of_segment,
        # Those of torch 2.0 do not say where they begin: one follows the other.
        np.where(given < 0, of_segment + _offsets(size, counts), given),
        size,
        _sizes(map(_requested, blocks), len(blocks)),
        states,
        _stacks(map(_block_stack, blocks)),
    )


def unknown_actions(traces: Sequence[Sequence[Item]]) -> Counter[str]:
    """Returns how many events have each action that is none of torch's."""
    actions = Counter(event["action"] for events in traces for event in events)
    return Counter({action: count for action, count in actions.items() if action not in {*ACTIONS, *OTHER_ACTIONS}})


def total_sizes(segments: Sequence[Item]) -> tuple[Ints, Ints]:
    """Returns device and size of each segment."""
    size = _sizes(map(itemgetter("total_size"), segments), len(segments))
    return _optional(segments, "device", 0), size


def _kinds(events: Sequence[Item]) -> npt.NDArray[np.int8]:
    actions = list(map(itemgetter("action"), events))
    _check_texts(actions)
    return np.fromiter(map(ACTIONS.get, actions, repeat(OTHER)), np.int8, len(events))


def _check_texts(values: Sequence[Any]) -> None:
    """Refuses what is no text: to write nested lists as text, or to look them up, may take for ever."""
    if set(map(type, values)) - {str}:
        raise SnapshotError("it has actions or states that are no texts")


def _integers(values: Iterable[Any], count: int) -> Ints:
    return np.fromiter(map(index, values), np.int64, count)  # a float is no integer


def _addresses(values: Iterable[Any], count: int) -> Ints:
    """Returns addresses of 64 unsigned bits in 63, where no two of a process are the same."""
    held = list(values)
    try:
        return _integers(held, count)
    except OverflowError:
        if max(held) >= 1 << 64:
            raise
        return _integers((value & HIGHEST if value > 0 else value for value in held), count)


def _sizes(values: Iterable[Any], count: int) -> Ints:
    sizes = _integers(values, count)
    if count and (sizes.min() < 0 or sizes.sum(dtype=np.float64) > MOST_BYTES):
        raise SnapshotError("it has sizes below 0, or beyond all memory")
    return sizes


def _optional(items: Sequence[Item], name: str, missing: int = -1) -> Ints:
    return _integers(map(methodcaller("get", name, missing), items), len(items))


def _offsets(size: Ints, counts: Sequence[int]) -> Ints:
    """Returns where each block begins in its segment."""
    before = np.cumsum(size) - size
    first = np.cumsum(counts, dtype=np.int64) - np.asarray(counts, np.int64)
    # Where the last segments have no blocks, they begin beyond the end.
    of_segment = np.append(before, 0)[np.minimum(first, len(before))]
    offsets: Ints = before - np.repeat(of_segment, counts)
    return offsets


def _requested(block: Item) -> int:
    size: int = block.get("requested_size", _history(block).get("real_size", block["size"]))
    return size


def _stacks(found: Iterable[Any]) -> list[Sequence[Item]]:
    stacks = list(found)
    if set(map(type, stacks)) - {list, tuple, type(None)}:
        raise SnapshotError("it has stacks that are no lists of frames")
    return [frames or () for frames in stacks]


def _block_stack(block: Item) -> Any:
    frames = block.get("frames")
    return _history(block).get("frames") if frames in (None, []) else frames


def _history(block: Item) -> Item:
    """Returns the last allocation of a block, as torch 2.0 wrote it."""
    history: Sequence[Item] = block.get("history") or [{}]
    return history[0]


def _check_once(group: Ints, address: Ints, name: str) -> None:
    """Refuses a file that lists an address twice in one group, which would count twice."""
    order = np.lexsort((address, group))
    if ((np.diff(group[order]) == 0) & (np.diff(address[order]) == 0)).any():
        raise SnapshotError(f"it lists {name} twice")


def _check_different(items: Sequence[Any], name: str) -> None:
    """Refuses a file that has one object many times, which would grow by that when it is read."""
    if len(set(map(id, items))) < len(items):
        raise SnapshotError(f"its {name!r} hold one object twice")
