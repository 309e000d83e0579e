"""Puts events of torch.profiler's Chrome trace, one after the other, into the columns of a timeline."""

import reprlib
from array import array
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from nbkit import units
from nbkit.readers.chrome import names
from nbkit.readers.chrome.arguments import EventFlops, collective_bytes, collective_group
from nbkit.readers.chrome.collectives import communication
from nbkit.readers.chrome.columns import integers, nanoseconds
from nbkit.readers.chrome.event_columns import LARGE, LARGEST, EventColumns
from nbkit.readers.chrome.flows import Flows, innermost_at
from nbkit.readers.chrome.names import user_line
from nbkit.readers.chrome.ranks import Ranks
from nbkit.timeline.events import HOST, KERNEL, MEMORY, MODULE, RUNTIME, Events, Ints
from nbkit.timeline.nesting import call_order, depth_levels, inherited, parents

# What begins in the first day of one clock and what begins later than the third is on clocks of two kinds.
DAY_NS = 86_400 * 10**9
# Kernels of one stream may overlap by the little that the next one starts early.
MOST_OVERLAP = 1.1
Event = dict[str, Any]
# Beyond the year 2043, or longer than a hundred days, is no time of a step; sums of them would not fit 64 bits.
LATEST_NS, LONGEST_NS = 1 << 61, 1 << 53


class ChromeEvents:
    """Takes the events that have a place in `ops` or `memory`; `skipped` counts the others by reason."""

    def __init__(self) -> None:
        self.skipped: Counter[str] = Counter()
        self.categories: Counter[str] = Counter()  # of the events that are skipped
        self.notes: list[str] = []
        self.spans: list[tuple[int, int]] = []  # start and duration of each recording, ns
        self.columns = EventColumns(self.skipped)
        self.flows, self.launches = Flows(), Flows()
        self._arrows = {**dict.fromkeys(names.FORWARD_BACKWARD, self.flows), names.NPU_LAUNCH: self.launches}
        self.frames = PythonFrames()
        self.flops = EventFlops()
        self.accelerator = "cuda"

    def __len__(self) -> int:
        return len(self.columns)

    def add(self, event: Any) -> None:
        """Takes the next event of a file, or counts why it is skipped."""
        if not isinstance(event, dict):
            self.skipped["list entries that are no events"] += 1
            return
        phase = event.get("ph")
        try:
            if phase == "X":
                self._complete(event)
            elif phase in ("s", "f", "t"):
                self._flow(event)
            elif phase in ("i", "I"):
                self._instant(event)
            elif phase != "M":
                self.skipped[f"events of phase {short(phase)}, which torch.profiler does not write"] += 1
        except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError):
            self.skipped["events without a name, a time or a thread"] += 1

    def events(self) -> Events:
        """Returns all events taken, linked as the file says."""
        events = self.columns.events()
        ranks = Ranks(events, self.columns.processes)
        self.notes += ranks.notes
        events.thread = ranks.threads(events.thread, np.arange(len(events)))
        if ranks.part_ids(events):
            self.notes.append("Processes of this file use the same ids: kernels belong to that of their launch.")
        events.forward = self.flows.forward(events, ranks)
        if self.flows.loose:
            self.skipped["arrows to backward ops that lack an op at one end"] += self.flows.loose
        self._link_by_arrows(events, ranks)
        events, away = on_one_clock(events)
        if away:
            self.skipped["events on another clock: some begin near 0, some days later"] += away
        self.notes += overlaps(events)
        if events.device is not None:
            devices = {device: self.device_name(device) for device in {*events.device}}
            events.device = [devices[device] for device in events.device]
        return self.frames.fill_sources(events, ranks)

    def _link_by_arrows(self, events: Events, ranks: Ranks) -> None:
        """Links kernels of an NPU with the ops that arrows lead from, as they have no ids."""
        pairs = self.launches.pairs(ranks)
        if not pairs:
            return
        own, external = events.integers("own_id"), events.integers("external_id")
        ops = innermost_at(events, {tail for tail, _ in pairs})
        op_of = {head: ops[tail] for tail, head in pairs if tail in ops}
        rows = np.flatnonzero(events.kind == KERNEL).tolist()
        for row in rows:
            op = op_of.get((int(events.thread[row]), int(events.start_ns[row])))
            if op is not None:
                own[op] = own[op] or LARGE + row
                external[row] = own[op]
        events.own_id, events.external_id = own, external

    def _npu_kernel(self, event: Event, args: Event) -> None:
        """Takes work of an NPU as Ascend's profiler writes it: without a category, with the kind of its task."""
        start, duration = self._times(event)
        thread = self.columns.thread(event["pid"], event["tid"])
        row = self.columns.append(_text(event["name"]), KERNEL, start, duration, thread)
        self.columns.number("stream", row, args.get("Stream Id"))
        self.columns.text("device", row, "npu")

    def _complete(self, event: Event) -> None:
        category = event.get("cat", "")
        kind = names.KINDS.get(category)
        if kind is None:
            self._without_kind(event, category)
            return
        name, args = _text(event["name"]), self._arguments(event)
        start, duration = self._times(event)
        row = self.columns.append(name, kind, start, duration, self.columns.thread(event["pid"], event["tid"]))
        if kind == HOST:
            if category == names.BLOCK:
                self.columns.number("block", row, 1)
            self._host(row, name, args)
        elif kind == RUNTIME:
            self.accelerator = names.ACCELERATORS.get(category.partition("_")[0], self.accelerator)
            self._launch(row, args)
        else:
            self._launch(row, args)
            self._work(row, args)

    def _times(self, event: Event) -> tuple[int, int]:
        """Returns start and duration in ns; 0 for one whose end was not recorded, which torch writes in many ways."""
        start = nanoseconds(event["ts"])
        if not -LATEST_NS <= start <= LATEST_NS:
            raise ValueError("no time")
        try:
            duration = nanoseconds(event.get("dur"))
        except (ValueError, OverflowError):
            duration = -1
        if 0 <= duration <= LONGEST_NS:
            return start, duration
        self.skipped["ends that were not recorded: these events count with a time of 0"] += 1
        return start, 0

    def _arguments(self, event: Event) -> Event:
        args = event.get("args")
        if type(args) is dict:
            return args
        if args is not None:
            self.skipped["arguments of events that are no object"] += 1
        return {}

    def _without_kind(self, event: Event, category: str) -> None:
        if "Task Type" in (args := self._arguments(event)) and not category:
            self._npu_kernel(event, args)
        elif category == "python_function":
            self._python(event)
        elif category == "Trace":
            self.spans.append(self._times(event))
        else:
            self.categories[category] += 1
            self.skipped[names.SKIPPED.get(category, f"events of the category {short(category)}")] += 1

    def _python(self, event: Event) -> None:
        """Takes a call of a module, or a frame of Python, which only tells the source line of the ops inside."""
        start, duration = self._times(event)
        thread = self.columns.thread(event["pid"], event["tid"])
        if module := names.PYTHON_MODULE.fullmatch(event["name"]):
            self.columns.append(module[1], MODULE, start, duration, thread)
            return
        self.frames.add(event["name"], start, duration, thread, len(self))
        self.skipped["Python frames (they tell the source lines)"] += 1

    def _host(self, row: int, name: str, args: Event) -> None:
        columns = self.columns
        columns.number("own_id", row, args.get("External id") or args.get("external id"))
        shapes = args.get("Input Dims")
        if shapes:
            columns.text("input_shapes", row, str(shapes))  # lists of integers read the same in Python and in JSON
        if (flops := self.flops.of(name, args)) is not None:
            columns.number("flops", row, flops)
        if "Call stack" in args and (line := first_user_line(args["Call stack"])):
            columns.text("source", row, line)
        self.collective(row, name, args)

    def _launch(self, row: int, args: Event) -> None:
        """Fills in which op made a runtime call or device work."""
        self.columns.number("correlation", row, args.get("correlation"))
        self.columns.number("external_id", row, args.get("External id") or args.get("external id"))

    def _work(self, row: int, args: Event) -> None:
        self.columns.number("stream", row, args.get("stream"))
        if (index := self.columns.whole(args.get("device"))) is not None:
            self.columns.text("device", row, f":{index}")
        self.columns.number("size_bytes", row, args.get("bytes"))
        self.collective(row, "", args)

    def collective(self, row: int, name: str, args: Event) -> None:
        size = collective_bytes(name, args)
        if size is not None:
            self.columns.number("size_bytes", row, size)
        elif args.get("In msg nelems") is not None and args.get("dtype") is not None:
            self.skipped["sizes of collectives whose number of elements or dtype is none that is known"] += 1
        if (told := communication(name, args)) is not None:
            self.columns.text("communication", row, told)
        if "Collective name" in args and (group := collective_group(args)) is not None:
            self.columns.text("group", row, group)

    def _instant(self, event: Event) -> None:
        name = event["name"]
        if name != "[memory]":
            if not name.startswith(names.MARKS):
                self.skipped[f"instants {short(name)}"] += 1
            return
        args, columns = event["args"], self.columns
        size = int(args["Bytes"])
        if abs(size) > LARGEST:
            raise ValueError("no size")
        start, _ = self._times({"ts": event["ts"], "dur": 0})
        row = columns.append(name, MEMORY, start, 0, columns.thread(event["pid"], event["tid"]))
        columns.number("size_bytes", row, size)
        columns.number("allocated_bytes", row, args.get("Total Allocated"))
        columns.number("address", row, args.get("Addr"))
        columns.text("device", row, self.memory_device(args))

    def memory_device(self, args: Event) -> str:
        kind, index = self.columns.whole(args.get("Device Type")), self.columns.whole(args.get("Device Id"))
        name = names.DEVICE_TYPES.get(kind or 0, f"device{kind}")
        return name if index is None or index < 0 else f"{name}:{index}"

    def _flow(self, event: Event) -> None:
        category = event.get("cat", "")
        if category in names.LAUNCHES:  # a launch's two ends have the same correlation already
            return
        if (flows := self._arrows.get(category)) is None:
            self.skipped[f"arrows of the category {short(category)}"] += 1
            return
        key = event["id"] if flows is self.launches else (event["pid"], event["id"])
        start, _ = self._times({"ts": event["ts"], "dur": 0})
        flows.add(event["ph"], key, (self.columns.thread(event["pid"], event["tid"]), start, len(self)))

    def device_name(self, device: str | None) -> str | None:
        """Names a device: device work tells only its number; which kind it is, the runtime's category says."""
        return f"{self.accelerator}{device}" if device is not None and device.startswith(":") else device


def first_user_line(stack: object) -> str | None:
    """Returns the innermost line of the user's code in a stack that is written in one text; None for none."""
    lines = (names.user_line(frame) for frame in str(stack).split(";"))
    return next(filter(None, lines), None)


def short(value: object) -> str:
    return reprlib.repr(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return value


def on_one_clock(events: Events) -> tuple[Events, int]:
    """Returns the events of the clock that most are of, and how many are not, where some count from days before."""
    fewer = min(np.abs(events.start_ns) < DAY_NS, events.start_ns > 3 * DAY_NS, key=np.sum)
    count = int(fewer.sum())
    return (events.at(np.flatnonzero(~fewer)), count) if count else (events, 0)


def overlaps(events: Events) -> list[str]:
    """Returns a note for each stream on which kernels take more time than passes."""
    work = np.flatnonzero((events.kind == KERNEL) & (events.duration_ns > 0))
    notes = []
    for thread in np.unique(events.thread[work]).tolist():
        rows = work[events.thread[work] == thread]
        taken, passed = int(events.duration_ns[rows].sum()), _covered(events.start_ns[rows], events.duration_ns[rows])
        notes += overlap_note(int(events.integers("stream")[rows[0]]), taken, passed)
    return notes


def overlap_note(stream: int, taken: int, passed: int) -> list[str]:
    """Returns a note where kernels of a stream take much more time, in ns, than passes."""
    if taken <= MOST_OVERLAP * passed:
        return []
    where = f"stream {stream}" if stream >= 0 else "one stream"
    times = f"{units.duration(taken / 1e3)} of device time within {units.duration(passed / 1e3)} on {where}"
    return [f"Kernels overlap: {times}; their ends may have been recorded late."]


def _covered(start: Ints, duration: Ints) -> int:
    """Returns how much time lies in at least one of the intervals."""
    order = np.argsort(start, kind="stable")
    start, end = start[order], (start + duration)[order]
    before = np.append(start[0], np.maximum.accumulate(end)[:-1])
    return int(np.maximum(end - np.maximum(start, before), 0).sum())


class PythonFrames:
    """Collects frames of the user's code; those of torch and of Python itself are left out."""

    def __init__(self) -> None:
        self._start, self._duration, self._thread, self._position, self._code = (array("q") for _ in range(5))
        self.lines: list[str] = []
        self._codes: dict[str, int] = {}  # per frame text its line, -1 if it is not the user's

    def __len__(self) -> int:
        return len(self._code)

    def add(self, frame: str, start: int, duration: int, thread: int, position: int) -> None:
        """Adds a frame "path/file.py(12): function", its time in ns, and how many rows came before."""
        if (code := self.code(frame)) >= 0:
            for column, value in zip(self.columns(), (start, duration, thread, position, code), strict=True):
                column.append(value)

    def code(self, frame: str) -> int:
        """Returns the number of the line that a frame tells; -1 if it is not the user's."""
        code = self._codes.get(frame)
        if code is None:
            line = user_line(frame)
            code = self._codes[frame] = -1 if line is None else len(self.lines)
            self.lines += [] if line is None else [line]
        return code

    def extend(self, *columns: Ints) -> None:
        """Adds many frames: start, duration, thread, position and the number of the line, that of the user's only."""
        for column, values in zip(self.columns(), columns, strict=True):
            column.frombytes(values.astype(np.int64).tobytes())

    def columns(self) -> "tuple[array[int], ...]":
        return self._start, self._duration, self._thread, self._position, self._code

    def fill_sources(self, events: Events, ranks: Ranks) -> Events:
        """Returns the events, those that have no source line with that of the innermost frame around them."""
        if not self._code:
            return events
        start, duration, thread, position, code = (integers(column) for column in self.columns())
        return with_sources(events, (start, duration, ranks.threads(thread, position), code), self.lines)

    def drain(self) -> tuple[Ints, ...]:
        """Returns start, duration, thread and number of the line of each frame, and forgets them."""
        start, duration, thread, _, code = (integers(column) for column in self.columns())
        for column in self.columns():
            del column[:]
        return start, duration, thread, code


def with_sources(events: Events, frames: tuple[Ints, Ints, Ints, Ints], lines: Sequence[str]) -> Events:
    """Returns the events, those that have no source line with that of the innermost frame around them.

    `frames` are start, duration, thread and index in `lines` of each frame.
    """
    start, duration, thread, code = frames
    host = np.flatnonzero(np.isin(events.kind, (HOST, MODULE, RUNTIME)))
    start = np.concatenate([start, events.start_ns[host]])
    duration = np.concatenate([duration, events.duration_ns[host]])
    thread = np.concatenate([thread, events.thread[host]])
    order = call_order(start, duration)
    parent = parents(thread[order], start[order], (start + duration)[order])
    frame = inherited(parent, depth_levels(parent), order < len(code))
    source = list(events.texts("source"))
    rows = np.flatnonzero((frame >= 0) & (order >= len(code)))
    for row, line in zip(host[order[rows] - len(code)].tolist(), code[order[frame[rows]]].tolist(), strict=True):
        source[row] = source[row] or lines[line]
    events.source = source
    return events
