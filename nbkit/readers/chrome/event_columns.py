"""Grows the columns of a timeline, event by event, in little memory."""

from array import array
from collections import Counter
from collections.abc import Sequence

import numpy as np

from nbkit.readers.chrome.columns import Sparse, SparseTexts, integers, whole
from nbkit.readers.text_file import encodable
from nbkit.timeline.events import ABSENT, KERNEL, Events, Ints

# Integer columns that only some events have, and what stands for "not known" in them.
NUMBERS = {
    **dict.fromkeys(("own_id", "external_id", "correlation", "block"), 0),
    **dict.fromkeys(("stream", "flops", "size_bytes", "allocated_bytes", "address"), ABSENT),
}
TEXTS = ("device", "group", "communication", "input_shapes", "source")
# Their values only tell things apart, and may need all of 64 bits; of others so large a sum would not fit.
UNSIGNED = frozenset(("own_id", "external_id", "correlation", "address"))
LARGE, LARGEST = 1 << 62, 1 << 56
ODD = "numbers of another kind, or too large, which are taken as unknown"


class EventColumns:
    """Numbers rows in the order of `append`; the other columns are filled by row, or `skipped` counts why not."""

    def __init__(self, skipped: Counter[str]) -> None:
        self._skipped = skipped
        self._threads: dict[tuple[object, object], int] = {}
        self._known: dict[str, str] = {}  # each name once
        self._large: dict[int, int] = {}  # unsigned numbers beyond 62 bits, numbered
        self._of_hosts: set[int] = set()  # threads of drained events that are no streams
        self._begin()

    def _begin(self) -> None:
        self._name: list[str] = []
        self._kind = array("b")
        self._start, self._duration, self._thread = array("q"), array("q"), array("q")
        self._numbers = {name: Sparse() for name in NUMBERS}
        self._texts = {name: SparseTexts() for name in TEXTS}

    def __len__(self) -> int:
        return len(self._kind)

    def append(self, name: str, kind: int, start: int, duration: int, thread: int) -> int:
        """Adds a row with its times in ns, and returns its number."""
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = encodable(name)
        self._name.append(known)
        self._kind.append(kind)
        self._start.append(start)
        self._duration.append(duration)
        self._thread.append(thread)
        return len(self._kind) - 1

    def extend(self, names: Sequence[str], codes: Ints, kind: Ints, start: Ints, duration: Ints, thread: Ints) -> None:
        """Adds many rows; `codes` index their `names`."""
        known = [self._known.setdefault(name, encodable(name)) for name in names]
        self._name += [known[code] for code in codes.tolist()]
        self._kind.frombytes(kind.astype(np.int8).tobytes())
        for column, values in ((self._start, start), (self._duration, duration), (self._thread, thread)):
            column.frombytes(values.astype(np.int64).tobytes())

    def thread(self, process: object, thread: object) -> int:
        """Returns the number of a thread of a process."""
        key = process, thread
        known = self._threads.get(key)
        if known is None:
            known = self._threads[key] = len(self._threads)
        return known

    @property
    def processes(self) -> list[object]:
        """Returns the process of each thread, by its number."""
        return [process for process, _ in self._threads]

    def number(self, name: str, row: int, value: object) -> None:
        """Fills in an integer column, if the value is an integer that it can hold."""
        if value is None:
            return
        number = value if type(value) is int else self.whole(value)
        if number is None:
            return
        if not -LARGEST <= number <= LARGEST:
            if name not in UNSIGNED or not -LARGE <= number < 1 << 64:
                self._skipped[ODD] += 1
                return
            if number >= LARGE:
                number = LARGE + self._large.setdefault(number, len(self._large))
        self._numbers[name].put(row, number)

    def numbers(self, name: str, rows: Ints, values: Ints) -> None:
        """Fills in an integer column in many rows."""
        fits = np.abs(values) <= LARGEST
        self._numbers[name].put_all(rows[fits], values[fits])
        for row, value in zip(rows[~fits].tolist(), values[~fits].tolist(), strict=True):
            self.number(name, row, value)

    def whole(self, value: object) -> int | None:
        """Returns the integer that a value stands for, None for None; counts one that stands for none."""
        if value is None or type(value) is int:
            return value
        number = whole(value)
        if number is None:
            self._skipped[ODD] += 1
        return number

    def text(self, name: str, row: int, value: str) -> None:
        """Fills in a text column."""
        self._texts[name].put(row, value)

    def texts(self, name: str, rows: Ints, codes: Ints, texts: Sequence[str]) -> None:
        """Fills in a text column in many rows; `codes` index their `texts`."""
        self._texts[name].put_all(rows, codes, texts)

    def events(self) -> Events:
        """Returns the rows as events."""
        length = len(self)
        events = Events(
            name=self._name,
            kind=integers(self._kind).astype("int8"),
            start_ns=integers(self._start),
            duration_ns=integers(self._duration),
            thread=integers(self._thread),
            main_thread=self.main_thread(),
        )
        for name, missing in NUMBERS.items():
            if len(self._numbers[name]):
                setattr(events, name, self._numbers[name].dense(length, missing))
        for name in TEXTS:
            if len(self._texts[name]):
                setattr(events, name, self._texts[name].dense(length))
        return events

    def drain(self) -> Events:
        """Returns the rows so far and forgets them; threads, names and numbers stay the same ones."""
        events = self.events()
        self._of_hosts |= set(events.thread[events.kind != KERNEL].tolist())
        self._begin()
        return events

    def main_thread(self) -> int | None:
        """Returns the thread that a process began with, which on Linux has its number; None if no event is of it."""
        # Streams are no threads, but have numbers like them.
        present = self._of_hosts | {
            number for number, kind in zip(self._thread, self._kind, strict=True) if kind != KERNEL
        }
        mains = (number for (process, thread), number in self._threads.items() if process == thread)
        return next((number for number in mains if number in present), None)
