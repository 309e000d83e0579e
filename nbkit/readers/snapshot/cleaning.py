"""Leaves out events, segments and blocks of a snapshot that are not as torch writes them, and says how many."""

from collections import Counter
from collections.abc import Hashable, Mapping
from itertools import starmap
from typing import Any

from nbkit import units
from nbkit.readers.snapshot.events import HIGHEST

Item = Mapping[str, Any]
EVENT = ("addr", "size", "stream", "time_us", "device_free")
BLOCK = ("address", "size", "requested_size")
SEGMENT = ("device", "address", "total_size", "stream")
MOST_DEVICES = 1_024


def cleaned(segments: list[Any], traces: Any) -> tuple[list[Item], list[list[Item]], list[str]]:
    """Returns the segments and events that can be read, and notes about the others."""
    lost: Counter[str] = Counter()
    again: Counter[str] = Counter()
    copies: dict[int, Any] = {}  # what is one object in the file stays one, which is refused then

    def kept(items: Any, noun: str, names: tuple[str, ...], needed: tuple[str, ...]) -> list[Item]:
        if not isinstance(items, list):
            lost[f"list of {noun}s"] += 1
            return []
        if (result := copies.get(id(items))) is None:
            right = [item for item in items if _is_right(item, names, needed)]
            first = {_place(item): item for item in reversed(right)}
            result = copies[id(items)] = [item for item in right if first[_place(item)] is item]
            lost[noun] += len(items) - len(right)
            again[noun] += len(right) - len(result)
        return result

    traces = traces if isinstance(traces, list) else [traces]
    all_events = [event for trace in traces if isinstance(trace, list) for event in trace if isinstance(event, dict)]
    times = ("time_us",) if 2 * sum("time_us" in event for event in all_events) > len(all_events) else ()
    events = [kept(trace, "event", EVENT, ("action", "size", *times)) for trace in traces]
    kept_segments = kept(segments, "segment", SEGMENT, ("address", "total_size", "blocks"))
    for index, segment in enumerate(kept_segments):
        blocks = kept(segment["blocks"], "block", BLOCK, ("size", "state"))
        kept_segments[index] = copies.setdefault(id(segment), {**segment, "blocks": blocks})
    return kept_segments, events, [*starmap(_note, (+lost).items()), *starmap(_note_again, (+again).items())]


def _place(item: Item) -> Hashable:
    """Returns where a segment or block begins, which no other one does; torch 2.0 does not say it of blocks."""
    return (item.get("device"), item["address"] & HIGHEST) if "address" in item else id(item)


def _note(noun: str, count: int) -> str:
    those = "is not as torch writes it" if count == 1 else "are not as torch writes them"
    return f"{units.counted(count, noun)} {those} and left out: sums lack what they held."


def _note_again(noun: str, count: int) -> str:
    them = "is listed twice: it counts" if count == 1 else "are listed twice: they count"
    return f"{units.counted(count, noun)} {them} once."


def _is_right(item: Any, integers: tuple[str, ...], needed: tuple[str, ...]) -> bool:
    if not isinstance(item, dict) or not all(name in item for name in needed):
        return False
    texts = (item[name] for name in ("action", "state") if name in needed)
    lists = [held for name in ("frames", "history") if (held := item.get(name)) is not None]
    return (
        all(_is_size(item[name], name) for name in integers if name in item)
        and all(isinstance(text, str) for text in texts)
        and ("blocks" not in needed or isinstance(item["blocks"], list))
        and all(isinstance(held, list | tuple) and all(isinstance(one, dict) for one in held) for held in lists)
        and all(map(_is_frame, item.get("frames") or ()))
        and all(_is_right(one, ("real_size",), ()) for one in item.get("history") or ())
    )


def _is_size(value: Any, name: str) -> bool:
    limit = MOST_DEVICES if name == "device" else 1 << 64 if name in ("addr", "address", "stream") else 1 << 56
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < limit


def _is_frame(frame: Item) -> bool:
    kinds = (("name", str), ("filename", str), ("line", int))
    return all(isinstance(frame.get(name), kind) for name, kind in kinds)
