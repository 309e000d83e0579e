"""Reads Chrome traces, as torch.profiler and nbkit write them, as a Trace."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nbkit import units
from nbkit.errors import TraceError
from nbkit.readers import named_kinds
from nbkit.readers.chrome.batch import Parser, is_installed
from nbkit.readers.chrome.bulk import add_batch
from nbkit.readers.chrome.collectives import collectives_frame, process_meta
from nbkit.readers.chrome.events import ChromeEvents
from nbkit.readers.chrome.json_stream import JsonError, JsonStream
from nbkit.readers.chrome.saved_events import SavedEvents
from nbkit.readers.reader import Reader
from nbkit.readers.text_file import text_pieces
from nbkit.timeline import timeline
from nbkit.trace.trace import Trace

EVENTS, OURS = "traceEvents", "nbkit"
EXPECTED = "expected a Chrome trace that torch.profiler (export_chrome_trace, tensorboard_trace_handler) or nbkit wrote"
TAKEN = 1 << 16
# Floats stay the text that the file has, so that times are exact to the nanosecond.
EXACT = json.JSONDecoder(strict=False, parse_float=str)
PLAIN = json.JSONDecoder(strict=False)
# A list of anything but numbers and words, as a line may begin with "[1,0]<stdout>:" or "[rank0]:".
BEGINNING = re.compile(r'\s*(?:\{\s*["}]|\[\s*(?:["{\[\]]|\Z))')


def looks_like(text: str) -> bool:
    """Returns whether a file that begins with this text is JSON."""
    return BEGINNING.match(text) is not None


def read_chrome_trace(path: str | Path, others: str = "") -> Trace:
    """Returns the trace of a Chrome trace file, gzipped or not: `ops`, `memory` if allocations were recorded, and meta.

    The file is read in a stream. A file that nbkit wrote gives the frames it was written from. Module paths and
    overloads are unknown in others; what has no place in a frame is counted in meta["skipped"]. Raises TraceError if
    the file is absent, cut off, damaged or of another kind; for one that is no JSON `others` are what it might be.
    """
    reading = Reading(Path(path), others)
    reading.run()
    return reading.trace()


class Reading:
    """Reads one file: what stands around the list of events, and the events."""

    def __init__(
        self, path: Path, others: str = "", take: Callable[[ChromeEvents], None] = lambda events: None
    ) -> None:
        """`take` is called now and then; it may drain the events so far."""
        self.path, self.others, self.take = path, others, take
        self.around: dict[str, Any] = {}
        self.events: ChromeEvents | SavedEvents | None = None
        self.first: Any = None
        self.count = 0
        self.notes: list[str] = []
        self.parser: Parser | None = None

    def run(self) -> None:
        """Reads the whole file. Raises TraceError if it is damaged."""
        stream = JsonStream(text_pieces(self.path))
        try:
            self.read(stream)
            self.read_on(stream)
        except JsonError as error:
            self.refuse_other_kinds()
            raise _fault(self.path, error, self.count, stream.line(error.position)) from error
        finally:
            if self.parser is not None:
                self.parser.close()

    def read(self, stream: JsonStream) -> None:
        """Reads the first JSON document, or the next one."""
        first = stream.peek()
        self.is_object = first == "{"
        if first == "[":
            self._read_events(stream)
        elif first == "{":
            for name in stream.fields():
                if name == EVENTS:
                    self._read_events(stream)
                else:
                    self.around.setdefault(name, stream.value(PLAIN))
        else:
            if kind := named_kinds.of_text(stream.head()):
                raise TraceError(f"{self.path} is {kind}.")
            raise TraceError(
                f"{self.path} is not a trace: it is neither a folder of Trace.save() nor JSON, and no text of another "
                f"framework was recognized; {EXPECTED}{', ' * bool(self.others)}{self.others}."
            )

    def _read_events(self, stream: JsonStream) -> None:
        if stream.peek() != "[":
            raise TraceError(f"{self.path} is no Chrome trace: its {EVENTS!r} is no list; {EXPECTED}.")
        if self.events is None:
            ours = self.around.get(OURS)
            self.events = ChromeEvents() if ours is None else SavedEvents(self.path, ours)
        add = self.events.add
        # A list of events alone needs no end.
        may_be_open = not self.around and not self.is_object
        is_saved = isinstance(self.events, SavedEvents)
        bulk = None if is_saved or not is_installed() else self._add_bulk
        for event in stream.items(PLAIN if is_saved else EXACT, may_be_open, bulk):
            if not self.count:
                self.first = event
            add(event)
            self.count += 1
            if not self.count % TAKEN and isinstance(self.events, ChromeEvents):
                self.take(self.events)

    def _add_bulk(self, text: str) -> bool:
        """Takes the events of a text at once; returns False if they have to be taken one by one."""
        if self.parser is None:
            try:
                self.parser = Parser()
            except OSError:  # no place for temporary files
                return False
        batch = self.parser.parse(text)
        if batch is None or not isinstance(self.events, ChromeEvents) or not add_batch(self.events, batch):
            return False
        self.count += len(batch)
        self.take(self.events)
        return True

    def read_on(self, stream: JsonStream) -> None:
        """Reads what stands behind the first JSON document, as where traces were joined; notes what is lost."""
        documents, before = 1, 0
        try:
            while character := stream.peek():
                before = self.count
                if character not in "[{" or not isinstance(self.events, ChromeEvents):
                    line = stream.line(stream.position)
                    left = f"{stream.rest():,} characters behind the trace, from line {line:,} on, were left out."
                    self.notes.append(left)
                    break
                self.read(stream)
                documents += 1
        except (JsonError, TraceError) as error:
            stream.rest()
            self.notes.append(
                f"What stands behind document {documents} of the file is damaged ({error}): "
                f"{self.count - before:,} events of it were read."
            )
        if documents > 1:
            self.notes.append(f"The file holds {documents:,} JSON documents, one behind the other; all were read.")
        self._note_oddities(stream)

    def _note_oddities(self, stream: JsonStream) -> None:
        if stream.is_open:
            self.notes.append("The list of events has no end: its writer was stopped, or the file is cut off there.")
        if stream.odd:
            line, field = stream.first_odd
            self.notes.append(
                f"The file is no JSON in {units.counted(stream.odd, 'event')}, which were read as they are meant "
                f"(quotes or backslashes in texts, nan, None, commas too many): the first in {field!r}, line {line:,}."
            )

    def trace(self) -> Trace:
        self.refuse_other_kinds()
        if self.events is None:
            raise TraceError(f"{self.path} is JSON, but no Chrome trace: it has no {EVENTS!r}; {EXPECTED}.")
        if isinstance(self.events, SavedEvents):
            trace = self.events.trace()
            return Trace(trace.frames, {**trace.meta, "notes": [*trace.meta.get("notes", []), *self.notes]})
        if not len(self.events):
            raise TraceError(f"{self.path} has {_counted(self.events, self.count)}; {EXPECTED}.")
        events = self.events.events()
        made = timeline(events)
        frames = {"ops": made.ops} if made.memory is None else {"ops": made.ops, "memory": made.memory}
        if (collectives := collectives_frame(made.ops, made.communication, self.around)) is not None:
            frames["collectives"] = collectives
        ends = made.ops["start_us"] + made.ops["total_time_us"]
        end_us = float(ends.max()) if len(ends) else 0.0
        process = process_meta(self.around, int(events.start_ns.min(initial=1 << 62)))
        return Trace(frames, self.meta(self.events, set(made.ops["device"].dropna()), end_us) | process)

    def refuse_other_kinds(self) -> None:
        """Raises TraceError if the file is no trace, but of another kind that is known."""
        kind = named_kinds.of_object(self.around) if self.events is None else None
        if isinstance(self.events, ChromeEvents):
            kind = named_kinds.of_events(self.first)
        if kind:
            raise TraceError(f"{self.path} is {kind}.")

    def meta(self, events: ChromeEvents, devices: Iterable[str], end_us: float) -> dict[str, Any]:
        """Returns what the file says about the recording, of ops on these devices up to this time."""
        wall_us = sum(duration for _, duration in events.spans) / 1e3 or end_us
        return {
            "verb": "optime",
            "name": self.path.name,
            "created": _created(self.around, events),
            "complete": True,
            "error": None,
            "versions": {},
            "devices": sorted(devices),
            "wall_us": wall_us,
            "recorder_us": None,
            "skipped": dict(events.skipped),
            "repeats": 0,
            "warmup": 0,
            "notes": [*self.notes, *events.notes],
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


def _fault(path: Path, error: JsonError, count: int, line: int) -> TraceError:
    position = f"after {count:,} events, at character {error.position:,} (line {line:,})"
    if error.is_cut:
        return TraceError(f"{path} is cut off {position}; copy it again whole, or export it again.")
    where = f", in {error.field!r} of an event" if error.field else ""
    return TraceError(f"{path} is damaged {position}: {error}{where}; copy it again, or export it again.")


CHROME = Reader("a Chrome trace of torch.profiler", read_chrome_trace, of_beginning=looks_like)
