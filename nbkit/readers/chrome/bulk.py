"""Puts many events of a Chrome trace at once into the columns that `events.py` fills one by one, with its words."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from nbkit.readers.chrome import names
from nbkit.readers.chrome.arguments import EventFlops
from nbkit.readers.chrome.batch import ID, WORK_BYTES, Batch, Column, Flags, nanoseconds
from nbkit.readers.chrome.event_columns import LARGEST
from nbkit.readers.chrome.events import LATEST_NS, LONGEST_NS, ChromeEvents, first_user_line, short
from nbkit.timeline.events import ABSENT, HOST, KERNEL, MEMORY, MODULE, RUNTIME, Ints

PHASES = ("X", "M", "s", "f", "t", "i", "I")
NO_KIND = -1


class OddError(Exception):
    """Says that a batch holds what only the parser of single events knows how to take; nothing has changed."""


def add_batch(events: ChromeEvents, batch: Batch) -> bool:
    """Takes all events of a batch; returns False, and has changed nothing, where one of them is odd in any way."""
    try:
        sorted_out = _Sorted(events, batch)
    except OddError:
        return False
    sorted_out.put()
    return True


@dataclass
class _Rows:
    """Holds which events become rows, and the numbers of these."""

    at: Ints
    row: Ints

    def where(self, chosen: Flags) -> "_Rows":
        keep = chosen[self.at]
        return _Rows(self.at[keep], self.row[keep])


class _Sorted:
    """Sorts the events of a batch by what becomes of them; checks all that could be odd before anything is put."""

    def __init__(self, events: ChromeEvents, batch: Batch) -> None:
        self.events, self.batch = events, batch
        self.name = batch.column("name")
        self.category = batch.column("cat")
        self._sort_kinds()
        self._sort_names()
        self._check_times()
        self._find_threads()
        if self.is_memory.any():
            self._read_memory()

    def _sort_kinds(self) -> None:
        phase = self.batch.column("ph")
        if not phase.is_known.all() or not all(value in PHASES for value in phase.values[:-1]):
            raise OddError
        if not all(isinstance(value, str) for value in self.category.values[:-1]):
            raise OddError
        phases = np.array(phase.values, dtype=object)[phase.codes]
        self.categories = [*self.category.values[:-1], ""]
        is_complete = phases == "X"
        kinds = np.array([names.KINDS.get(category, NO_KIND) for category in self.categories], dtype=np.int64)
        self.kind: Ints = np.where(is_complete, kinds[self.category.codes], NO_KIND)
        self.is_python = is_complete & self._of_category("python_function".__eq__)
        self.is_span = is_complete & self._of_category("Trace".__eq__)
        self.is_other = is_complete & (self.kind == NO_KIND) & ~self.is_python & ~self.is_span
        self.is_instant = np.isin(phases, ("i", "I"))
        self.is_flow = np.isin(phases, ("s", "f", "t")) & ~self._of_category(names.LAUNCHES.__contains__)
        self.phases = phases
        if (self.is_flow & self._of_category(names.NPU_LAUNCH.__eq__)).any():
            raise OddError
        if (self.is_other & self._of_category("".__eq__) & self.batch.column("Task Type").is_known).any():
            raise OddError
        self.is_arrow = self.is_flow & self._of_category(names.FORWARD_BACKWARD.__contains__)

    def _of_category(self, test: Callable[[str], bool]) -> Flags:
        return np.array([bool(test(category)) for category in self.categories], dtype=bool)[self.category.codes]

    def _sort_names(self) -> None:
        named = (self.kind != NO_KIND) | self.is_python | self.is_instant
        texts = [value if isinstance(value, str) else None for value in self.name.values]
        if any(text is None for text in texts[:-1]) or (named & ~self.name.is_known).any():
            raise OddError
        self.texts = [text or "" for text in texts]
        is_memory = np.array([text == "[memory]" for text in self.texts], dtype=bool)[self.name.codes]
        self.is_memory = self.is_instant & is_memory
        frames = np.zeros(len(self.texts), dtype=bool)
        for code in np.unique(self.name.codes[self.is_python]).tolist():
            module = names.PYTHON_MODULE.fullmatch(self.texts[code])
            frames[code] = module is None
        self.is_frame = self.is_python & frames[self.name.codes]
        self.kind[self.is_python & ~self.is_frame] = MODULE
        self.kind[self.is_memory] = MEMORY

    def _check_times(self) -> None:
        needed = (self.kind != NO_KIND) | self.is_frame | self.is_span | self.is_arrow
        (start, has_start), (duration, has_duration) = self.batch.times("ts"), self.batch.times("dur")
        self.start, is_odd = nanoseconds(np.where(needed, start, 0.0))
        is_late = ~has_start | ~np.isfinite(start) | (np.abs(self.start) > LATEST_NS)
        if (needed & (is_late | is_odd)).any():
            raise OddError
        lasts = needed & ~self.is_arrow & ~self.is_memory
        length, is_odd = nanoseconds(np.where(lasts & np.isfinite(duration), duration, 0.0))
        if (lasts & is_odd).any():
            raise OddError
        is_recorded = has_duration & np.isfinite(duration) & (length >= 0) & (length <= LONGEST_NS)
        self.duration: Ints = np.where(lasts & is_recorded, length, 0)
        self.open_ended = int((lasts & ~is_recorded).sum())

    def _find_threads(self) -> None:
        process, thread = self.batch.column("pid"), self.batch.column("tid")
        self.has_thread = (self.kind != NO_KIND) | self.is_frame | self.is_arrow
        if not (process.is_known & thread.is_known)[self.has_thread].all():
            raise OddError
        if any(isinstance(value, list | dict) for value in (*process.values, *thread.values)):
            raise OddError
        keys = self.batch.column("id")
        codes = np.unique(keys.codes[self.is_arrow]).tolist()
        if ABSENT in codes or any(isinstance(keys.value(code), list | dict) for code in codes):
            raise OddError

    def _read_memory(self) -> None:
        """Reads the bytes that the allocations tell."""
        column = self.batch.memory_bytes
        if column is None or len(column) < int(self.is_memory.sum()):
            raise OddError
        sizes = Column(column)
        values = [value if type(value) is int and abs(value) <= LARGEST else None for value in sizes.values]
        numbers = [values[code] for code in sizes.codes.tolist()]
        # The bytes are those of all events of the name, of which some may be no instants.
        if len(numbers) != int(self.is_memory.sum()) or None in numbers:
            raise OddError
        self.sizes = np.array(numbers, dtype=np.int64)

    def put(self) -> None:
        """Puts all events."""
        events, columns = self.events, self.events.columns
        is_row = self.kind != NO_KIND
        at = np.flatnonzero(is_row)
        before = len(events) + np.cumsum(is_row) - is_row  # how many rows came before each event
        self.rows = _Rows(at, before[at])
        thread = self._threads()
        self._count()
        codes = self.name.codes
        modules = [match[1] if (match := names.PYTHON_MODULE.fullmatch(text)) else text for text in self.texts]
        is_module = self.kind[at] == MODULE
        columns.extend(
            [*self.texts, *modules],
            np.where(is_module, codes[at] + len(self.texts), codes[at]),
            self.kind[at],
            self.start[at],
            self.duration[at],
            thread[at],
        )
        for row in np.flatnonzero(self.is_span).tolist():
            events.spans.append((int(self.start[row]), int(self.duration[row])))
        self._frames(before, thread)
        self._arrows(before, thread)
        self._host(self.rows.where(self.kind == HOST))
        self._launches(self.rows.where(np.isin(self.kind, (RUNTIME, KERNEL))))
        self._work(self.rows.where(self.kind == KERNEL))
        if self.is_memory.any():
            self._memory(self.rows.where(self.is_memory))

    def _threads(self) -> Ints:
        """Returns the number of each event's thread, in order of appearance."""
        process, thread = self.batch.column("pid"), self.batch.column("tid")
        chosen = np.flatnonzero(self.has_thread)
        pairs = process.codes[chosen] * (len(thread.texts) + 1) + thread.codes[chosen]
        codes, different = pd.factorize(pairs)
        ids = (divmod(pair, len(thread.texts) + 1) for pair in different.tolist())
        number = self.events.columns.thread
        numbers = np.array([number(process.value(one), thread.value(other)) for one, other in ids], dtype=np.int64)
        result = np.zeros(len(self.batch), dtype=np.int64)
        result[chosen] = numbers[codes]
        return result

    def _count(self) -> None:
        """Counts what has no place in a frame."""
        skipped = self.events.skipped
        if self.open_ended:
            skipped["ends that were not recorded: these events count with a time of 0"] += self.open_ended
        for category, count in self._counted(self.is_other, self.category, self.categories):
            self.events.categories[category] += count
            skipped[names.SKIPPED.get(category, f"events of the category {short(category)}")] += count
        for category, count in self._counted(self.is_flow & ~self.is_arrow, self.category, self.categories):
            skipped[f"arrows of the category {short(category)}"] += count
        for name, count in self._counted(self.is_instant & ~self.is_memory, self.name, self.texts):
            if not name.startswith(names.MARKS):
                skipped[f"instants {short(name)}"] += count
        if frames := int(self.is_frame.sum()):
            skipped["Python frames (they tell the source lines)"] += frames

    @staticmethod
    def _counted(chosen: Flags, column: Column, texts: list[str]) -> list[tuple[str, int]]:
        codes, counts = np.unique(column.codes[chosen], return_counts=True)
        return [(texts[code], count) for code, count in zip(codes.tolist(), counts.tolist(), strict=True)]

    def _frames(self, before: Ints, thread: Ints) -> None:
        at = np.flatnonzero(self.is_frame)
        used, own = np.unique(self.name.codes[at], return_inverse=True)
        codes = np.array([self.events.frames.code(self.texts[code]) for code in used.tolist()], dtype=np.int64)[own]
        at, codes = at[codes >= 0], codes[codes >= 0]
        self.events.frames.extend(self.start[at], self.duration[at], thread[at], before[at], codes)

    def _arrows(self, before: Ints, thread: Ints) -> None:
        process, key = self.batch.column("pid"), self.batch.column("id")
        for at in np.flatnonzero(self.is_arrow).tolist():
            place = int(thread[at]), int(self.start[at]), int(before[at])
            ends = process.value(int(process.codes[at])), key.value(int(key.codes[at]))
            self.events.flows.add(self.phases[at], ends, place)

    def _host(self, rows: _Rows) -> None:
        blocks = rows.where(self._of_category(names.BLOCK.__eq__))
        self.events.columns.numbers("block", blocks.row, np.ones(len(blocks.row), dtype=np.int64))
        self._numbers("own_id", rows, ID)
        shapes = self.batch.column("Input Dims")
        self._texts("input_shapes", rows, shapes, lambda value: str(value) if value else None)
        self._flops(rows, shapes)
        self._texts("source", rows, self.batch.column("Call stack"), first_user_line)
        is_named = np.array([names.is_collective(text) for text in self.texts], dtype=bool)[self.name.codes]
        self._collectives(rows, is_named)

    def _flops(self, rows: _Rows, shapes: Column) -> None:
        """Works out the FLOPs once for each different call."""
        flops, inputs = self.batch.column("flops"), self.batch.column("Concrete Inputs")
        formulas: EventFlops = self.events.flops
        has_formula = np.array([formulas.knows(text) for text in self.texts], dtype=bool)[self.name.codes]
        rows = rows.where(flops.is_known | (has_formula & shapes.is_known))
        keys = np.zeros(len(rows.at), dtype=np.int64)
        columns = (self.name, flops, shapes, inputs)
        for column in columns:
            keys, _ = pd.factorize(keys * (len(column.texts) + 1) + column.codes[rows.at])
        _, first = np.unique(keys, return_index=True)
        found: list[object] = []
        for at in rows.at[first].tolist():
            words = zip(("flops", "Input Dims", "Concrete Inputs"), columns[1:], strict=True)
            args = {word: column.value(int(column.codes[at])) for word, column in words}
            found.append(formulas.of(self.texts[self.name.codes[at]], args))
        for row, key in zip(rows.row.tolist(), keys.tolist(), strict=True):
            self.events.columns.number("flops", row, found[key])

    def _launches(self, rows: _Rows) -> None:
        self._numbers("correlation", rows, "correlation")
        self._numbers("external_id", rows, ID)
        prefixes = [names.ACCELERATORS.get(category.partition("_")[0]) for category in self.categories]
        has_prefix = np.array([prefix is not None for prefix in prefixes], dtype=bool)[self.category.codes]
        for at in np.flatnonzero(has_prefix & (self.kind == RUNTIME))[-1:].tolist():
            self.events.accelerator = prefixes[self.category.codes[at]] or self.events.accelerator

    def _work(self, rows: _Rows) -> None:
        self._numbers("stream", rows, "stream")
        device = self.batch.column("device")
        is_whole = np.array([type(value) is int for value in device.values], dtype=bool)[device.codes]
        self._put_texts("device", rows.where(is_whole), device.codes, [f":{value}" for value in device.values])
        others = rows.where(~is_whole & device.is_known)
        for at, row in zip(others.at.tolist(), others.row.tolist(), strict=True):
            if (index := self.events.columns.whole(device.value(int(device.codes[at])))) is not None:
                self.events.columns.text("device", row, f":{index}")
        self._numbers("size_bytes", rows, WORK_BYTES)
        self._collectives(rows, np.zeros(len(self.batch), dtype=bool))

    def _collectives(self, rows: _Rows, is_named: Flags) -> None:
        """Takes the few events that may be collectives one by one."""
        tells = self.batch.column("Collective name").is_known | (
            self.batch.column("In msg nelems").is_known & self.batch.column("dtype").is_known
        )
        rows = rows.where(tells | is_named)
        for at, row in zip(rows.at.tolist(), rows.row.tolist(), strict=True):
            name = self.texts[self.name.codes[at]] if self.kind[at] == HOST else ""
            self.events.collective(row, name, self.batch.arguments(at))

    def _memory(self, rows: _Rows) -> None:
        columns = self.events.columns
        columns.numbers("size_bytes", rows.row, self.sizes)
        self._numbers("allocated_bytes", rows, "Total Allocated")
        self._numbers("address", rows, "Addr")
        kind, index = self.batch.column("Device Type"), self.batch.column("Device Id")
        keys = kind.codes[rows.at] * (len(index.texts) + 1) + index.codes[rows.at]
        for key in np.unique(keys).tolist():
            chosen = _Rows(rows.at[keys == key], rows.row[keys == key])
            at = int(chosen.at[0])
            args = {"Device Type": kind.value(int(kind.codes[at])), "Device Id": index.value(int(index.codes[at]))}
            device = self.events.memory_device(args)
            columns.texts("device", chosen.row, np.zeros(len(chosen.row), dtype=np.int64), [device])

    def _numbers(self, name: str, rows: _Rows, argument: str) -> None:
        """Fills in an integer column; numbers of another kind one by one."""
        columns = self.events.columns
        if (found := self.batch.integers(argument)) is not None:
            values, known = found
            chosen = rows.where(known)
            columns.numbers(name, chosen.row, values[chosen.at])
            return
        column = self.batch.column(argument)
        for at, row in zip(rows.at.tolist(), rows.row.tolist(), strict=True):
            columns.number(name, row, column.value(int(column.codes[at])))

    def _texts(self, name: str, rows: _Rows, column: Column, text: Callable[[Any], str | None]) -> None:
        """Fills in a text column with what each different value means; None is nothing."""
        texts: list[str | None] = [None] * (len(column.texts) + 1)
        for code in np.unique(column.codes[rows.at]).tolist():
            texts[code] = text(column.value(code)) if code != ABSENT else None
        has_text = np.array([value is not None for value in texts], dtype=bool)[column.codes]
        self._put_texts(name, rows.where(has_text), column.codes, [value or "" for value in texts])

    def _put_texts(self, name: str, rows: _Rows, codes: Ints, texts: list[str]) -> None:
        used, own = np.unique(codes[rows.at], return_inverse=True)
        self.events.columns.texts(name, rows.row, own, [texts[code] for code in used.tolist()])
