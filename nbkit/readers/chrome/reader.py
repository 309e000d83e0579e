"""Reads Chrome traces, as torch.profiler and nbkit write them, as a Trace."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nbkit.errors import TraceError
from nbkit.readers.chrome.events import ChromeEvents
from nbkit.readers.chrome.json_stream import JsonError, JsonStream
from nbkit.readers.chrome.saved_events import SavedEvents
from nbkit.readers.text_file import text_pieces
from nbkit.timeline import timeline
from nbkit.trace.trace import Trace

EVENTS, OURS = "traceEvents", "nbkit"
EXPECTED = "expected a Chrome trace that torch.profiler (export_chrome_trace, tensorboard_trace_handler) or nbkit wrote"
# Floats stay the text that the file has, so that times are exact to the nanosecond.
EXACT = json.JSONDecoder(strict=False, parse_float=str)
PLAIN = json.JSONDecoder(strict=False)


def read_chrome_trace(path: str | Path) -> Trace:
    """Returns the trace of a Chrome trace file, gzipped or not: `ops`, `memory` if allocations were recorded, and meta.

    The file is read in a stream. A file that nbkit wrote gives the frames it was written from. Module paths and
    overloads are unknown in others; what has no place in a frame is counted in meta["skipped"]. Raises TraceError if
    the file is absent, cut off, damaged or of another kind.
    """
    path = Path(path)
    stream = JsonStream(text_pieces(path))
    reading = _Reading(path)
    try:
        reading.read(stream)
    except JsonError as error:
        raise _fault(path, error, reading.count) from error
    return reading.trace()


class _Reading:
    """Reads one file: what stands around the list of events, and the events."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.around: dict[str, Any] = {}
        self.events: ChromeEvents | SavedEvents | None = None
        self.count = 0

    def read(self, stream: JsonStream) -> None:
        first = stream.peek()
        if first == "[":
            self._read_events(stream)
        elif first == "{":
            for name in stream.fields():
                if name == EVENTS:
                    self._read_events(stream)
                else:
                    self.around[name] = stream.value(PLAIN)
        else:
            raise TraceError(
                f"{self.path} is not a trace: it is neither a folder of Trace.save() nor JSON, and no text of another "
                f"framework was recognized; {EXPECTED}, a memory snapshot of torch.cuda, a OneFlow nn.Graph log, a "
                "Paddle program or an ONNX model."
            )

    def _read_events(self, stream: JsonStream) -> None:
        if stream.peek() != "[":
            raise TraceError(f"{self.path} is no Chrome trace: its {EVENTS!r} is no list; {EXPECTED}.")
        ours = self.around.get(OURS)
        self.events = ChromeEvents() if ours is None else SavedEvents(self.path, ours)
        add = self.events.add
        for event in stream.items(EXACT if ours is None else PLAIN):
            add(event)
            self.count += 1

    def trace(self) -> Trace:
        if self.events is None:
            raise TraceError(f"{self.path} is JSON, but no Chrome trace: it has no {EVENTS!r}; {EXPECTED}.")
        if isinstance(self.events, SavedEvents):
            return self.events.trace()
        if not len(self.events):
            raise TraceError(f"{self.path} has {_counted(self.events, self.count)}; {EXPECTED}.")
        made = timeline(self.events.events())
        frames = {"ops": made.ops} if made.memory is None else {"ops": made.ops, "memory": made.memory}
        return Trace(frames, self._meta(self.events, made.ops))

    def _meta(self, events: ChromeEvents, ops: Any) -> dict[str, Any]:
        ends = ops["start_us"] + ops["total_time_us"]
        wall_us = sum(duration for _, duration in events.spans) / 1e3 or (float(ends.max()) if len(ops) else 0.0)
        return {
            "verb": "optime",
            "name": self.path.name,
            "created": _created(self.around, events),
            "complete": True,
            "error": None,
            "versions": {},
            "devices": sorted(set(ops["device"].dropna())),
            "wall_us": wall_us,
            "recorder_us": None,
            "skipped": dict(events.skipped),
            "repeats": 0,
            "warmup": 0,
            "notes": [],
            "chrome_trace": self.around,
        }


def _created(around: Mapping[str, Any], events: ChromeEvents) -> str | None:
    """Returns when the recording began; null where the file's clock is not tied to the calendar."""
    base = around.get("baseTimeNanoseconds")
    if not isinstance(base, int) or not events.spans:
        return None
    try:
        moment = (base + min(start for start, _ in events.spans)) / 1e9
        return datetime.fromtimestamp(moment, UTC).isoformat()
    except (OverflowError, ValueError, OSError):
        return None


def _counted(events: ChromeEvents, count: int) -> str:
    if not count:
        return "no events"
    categories = [repr(name) for name, _ in events.categories.most_common(3)]
    of = f" (it has {', '.join(categories)})" if categories else ""
    return f"{count:,} list entries, but none is an op or kernel of torch.profiler{of}"


def _fault(path: Path, error: JsonError, count: int) -> TraceError:
    position = f"after {count:,} events, at character {error.position:,}"
    if error.is_cut:
        return TraceError(f"{path} is cut off {position}; copy it again whole, or export it again.")
    return TraceError(f"{path} is damaged {position}: {error}; copy it again, or export it again.")
