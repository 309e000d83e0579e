"""Puts events of torch.profiler's Chrome trace, one after the other, into the columns of a timeline."""

from collections import Counter
from typing import Any

from nbkit.readers.chrome import names
from nbkit.readers.chrome.arguments import EventFlops, collective_bytes, collective_group
from nbkit.readers.chrome.columns import nanoseconds, whole
from nbkit.readers.chrome.event_columns import EventColumns
from nbkit.readers.chrome.flows import Flows
from nbkit.readers.chrome.python_frames import PythonFrames
from nbkit.timeline.events import HOST, MEMORY, MODULE, RUNTIME, Events

Event = dict[str, Any]


class ChromeEvents:
    """Takes the events that have a place in `ops` or `memory`; `skipped` counts the others by reason."""

    def __init__(self) -> None:
        self.skipped: Counter[str] = Counter()
        self.categories: Counter[str] = Counter()  # of the events that are skipped
        self.spans: list[tuple[int, int]] = []  # start and duration of each recording, ns
        self._columns = EventColumns()
        self._flows = Flows()
        self._frames = PythonFrames()
        self._flops = EventFlops()
        self._accelerator = "cuda"

    def __len__(self) -> int:
        return len(self._columns)

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
                self.skipped[f"events of phase {phase!r}, which torch.profiler does not write"] += 1
        except (KeyError, TypeError, ValueError, OverflowError):
            self.skipped["events without a name, a time or a thread"] += 1

    def events(self) -> Events:
        """Returns all events taken, linked as the file says."""
        events = self._columns.events()
        events.forward = self._flows.forward(events)
        if events.device is not None:
            events.device = [self._device_name(device) for device in events.device]
        return self._frames.fill_sources(events)

    def _complete(self, event: Event) -> None:
        category = event.get("cat", "")
        kind = names.KINDS.get(category)
        if kind is None:
            self._without_kind(event, category)
            return
        name = event["name"]
        start, duration = nanoseconds(event["ts"]), nanoseconds(event.get("dur", 0))
        row = self._columns.append(name, kind, start, duration, self._columns.thread(event["pid"], event["tid"]))
        if category == names.BLOCK:
            self._columns.number("block", row, 1)
        args = event.get("args")
        if not args:
            return
        if kind == HOST:
            self._host(row, name, args)
        elif kind == RUNTIME:
            self._accelerator = names.ACCELERATORS.get(category.partition("_")[0], self._accelerator)
            self._launch(row, args)
        else:
            self._launch(row, args)
            self._work(row, args)

    def _without_kind(self, event: Event, category: str) -> None:
        if category == "python_function":
            self._python(event)
        elif category == "Trace":
            self.spans.append((nanoseconds(event["ts"]), nanoseconds(event.get("dur", 0))))
        else:
            self.categories[category] += 1
            self.skipped[names.SKIPPED.get(category, f"events of the category {category!r}")] += 1

    def _python(self, event: Event) -> None:
        """Takes a call of a module, or a frame of Python, which only tells the source line of the ops inside."""
        start, duration = nanoseconds(event["ts"]), nanoseconds(event.get("dur", 0))
        thread = self._columns.thread(event["pid"], event["tid"])
        if module := names.PYTHON_MODULE.fullmatch(event["name"]):
            self._columns.append(module[1], MODULE, start, duration, thread)
            return
        self._frames.add(event["name"], start, duration, thread)
        self.skipped["Python frames (they tell the source lines)"] += 1

    def _host(self, row: int, name: str, args: Event) -> None:
        columns = self._columns
        columns.number("own_id", row, args.get("External id") or args.get("external id"))
        shapes = args.get("Input Dims")
        if shapes:
            columns.text("input_shapes", row, str(shapes))  # lists of integers read the same in Python and in JSON
        if (flops := self._flops.of(name, args)) is not None:
            columns.number("flops", row, flops)
        if "Call stack" in args:
            lines = (names.user_line(frame) for frame in str(args["Call stack"]).split(";"))
            if line := next(filter(None, lines), None):
                columns.text("source", row, line)
        self._collective(row, name, args)

    def _launch(self, row: int, args: Event) -> None:
        """Fills in which op made a runtime call or device work."""
        self._columns.number("correlation", row, args.get("correlation"))
        self._columns.number("external_id", row, args.get("External id") or args.get("external id"))

    def _work(self, row: int, args: Event) -> None:
        self._columns.number("stream", row, args.get("stream"))
        if (index := whole(args.get("device"))) is not None:
            self._columns.text("device", row, f":{index}")
        self._columns.number("size_bytes", row, args.get("bytes"))
        self._collective(row, "", args)

    def _collective(self, row: int, name: str, args: Event) -> None:
        size = collective_bytes(name, args)
        if size is not None:
            self._columns.number("size_bytes", row, size)
        if "Collective name" in args and (group := collective_group(args)) is not None:
            self._columns.text("group", row, group)

    def _instant(self, event: Event) -> None:
        name = event["name"]
        if name != "[memory]":
            if not name.startswith(names.MARKS):
                self.skipped[f"instants {name!r}"] += 1
            return
        args, columns = event["args"], self._columns
        size = int(args["Bytes"])
        thread = columns.thread(event["pid"], event["tid"])
        row = columns.append(name, MEMORY, nanoseconds(event["ts"]), 0, thread)
        columns.number("size_bytes", row, size)
        columns.number("allocated_bytes", row, args.get("Total Allocated"))
        columns.number("address", row, args.get("Addr"))
        columns.text("device", row, _memory_device(args))

    def _flow(self, event: Event) -> None:
        category = event.get("cat", "")
        if category in names.FORWARD_BACKWARD:
            thread = self._columns.thread(event["pid"], event["tid"])
            self._flows.add(event["ph"], (event["pid"], event["id"]), thread, nanoseconds(event["ts"]))
        elif category not in names.LAUNCHES:  # a launch's two ends have the same correlation already
            self.skipped[f"arrows of the category {category!r}"] += 1

    def _device_name(self, device: str | None) -> str | None:
        """Names a device: device work tells only its number; which kind it is, the runtime's category says."""
        return f"{self._accelerator}{device}" if device is not None and device.startswith(":") else device


def _memory_device(args: Event) -> str:
    kind, index = whole(args.get("Device Type")) or 0, whole(args.get("Device Id"))
    name = names.DEVICE_TYPES.get(kind, f"device{kind}")
    return name if index is None or index < 0 else f"{name}:{index}"
