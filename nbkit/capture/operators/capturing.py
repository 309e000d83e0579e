"""Saves chosen calls of a recording in a folder: what each reads from before it runs, and what it leaves after."""

from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from nbkit import units
from nbkit.capture.calls.collectives import RUNS, is_waited_for, works
from nbkit.capture.calls.encode import NotCapturedError
from nbkit.capture.calls.memory import KnownContents, NativeContents, Span
from nbkit.capture.calls.parameters import Parameters, ReferencedParameters
from nbkit.capture.calls.state import call_state, device_state
from nbkit.capture.calls.taking import CallTaker, Taken
from nbkit.capture.frames.build import machine_text, now_text, versions
from nbkit.capture.frames.selection import Selection
from nbkit.capture.frames.string_columns import text_column, texts
from nbkit.capture.operators.copies import is_plain
from nbkit.capture.operators.intercept import Intercepted, InterceptMode, Interceptor
from nbkit.capture.operators.observed_calls import ObservedCalls
from nbkit.capture.raw.recording import OpPlaces, Recording
from nbkit.capture.recorder.observer import Frames, Meta
from nbkit.capture.replay.op_traits import COLLECTIVES, MARKERS, OpTraits, written_tensors
from nbkit.capture.scope.filters import EVERY_PHASE, CallFilters
from nbkit.capture.step.module_calls import ModuleCalls
from nbkit.errors import TraceError, first_line
from nbkit.schema import CAPTURES
from nbkit.trace.atomic_write import why_not
from nbkit.trace.calls.file_writer import PythonFileWriter
from nbkit.trace.calls.layout import PLACE_COLUMNS, Record
from nbkit.trace.calls.writing import CallWriter, FullError, places_text, set_aside
from nbkit.trace.trace import Trace

MAX_BYTES = 4 * 2**30


@dataclass
class Running:
    """Holds a collective that may not have completed; its record once it has, empty if it could not be taken."""

    call: Intercepted
    taken: Taken
    out: Any
    record: Record | None = None

    def is_completed(self) -> bool:
        """Returns whether its results are there, at the next op of the step or later."""
        return is_waited_for(self.call.traits.func, self.call.args) or all(
            work.is_completed() for work in works(self.out)
        )


class CapturedRows:
    """Holds calls in the order of the folder: row in Recording.ops, op, number of the call, what it raised."""

    def __init__(self) -> None:
        # Thousands of tuples would have Python's collector look through all that there is.
        self.slots, self.numbers = array("q"), array("q")
        self.ops: list[str] = []
        self.raised: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self.ops)

    def add(self, slots: Sequence[int], ops: Sequence[str], numbers: Sequence[int], raised: str | None = None) -> None:
        """Adds calls; `raised` is what the first of them has raised."""
        if raised is not None:
            self.raised[len(self)] = raised
        self.slots.extend(slots)
        self.numbers.extend(numbers)
        self.ops.extend(ops)

    def cut(self, length: int) -> None:
        """Leaves those from a row on out."""
        del self.slots[length:], self.numbers[length:], self.ops[length:]

    def frame(self, places: OpPlaces, op_ids: np.ndarray) -> pd.DataFrame:
        """Returns the frame `captures`: `places` are those of the ops, by op_id; `op_ids` are the op_ids by what add()
        was given as slots, -1 for a call that has none.
        """
        ids = op_ids[np.array(self.slots, np.int64)]
        codes = {name: np.append(numbers, -1)[ids] for name, (numbers, _) in places.items()}
        # Autograd calls some ops that torch's observer does not report: they stand in the op that they follow.
        ops = np.array([*places["op"][1], None], object)[codes["op"]]
        columns: dict[str, Any] = {name: text_column(codes[name], places[name][1]) for name in PLACE_COLUMNS[1:]}
        columns["op_id"] = np.where(ops == np.array(self.ops, object), ids, -1)
        if self.raised:
            columns["raised"] = [*map(self.raised.get, range(len(self)))]
        own = {"op": texts(self.ops), "call": np.array(self.numbers, np.int64), "record": np.arange(len(self))}
        return CAPTURES.frame({**columns, **own})


class Capturing(Interceptor):
    """Saves chosen calls; adds the frame `captures`."""

    only: frozenset[tuple[str, int]] | None = None
    max_bytes = MAX_BYTES
    replaces = False  # an older capture in the folder, which is else set aside
    parameters: Parameters | None = None
    intercepts = False  # under a dispatch mode, though torch's observer could tell of the calls
    observed: ObservedCalls | None = None

    def __init__(self, folder: Path, filters: CallFilters) -> None:
        super().__init__(filters)
        self.folder = folder

    @contextmanager
    def below(self, recording: Recording, modules: ModuleCalls) -> Iterator[None]:
        state = call_state()
        head = {
            "created": now_text(),
            "versions": versions(),
            "machine": machine_text(),
            "state": state | device_state(),
        }
        library: Any = recording.native if self.is_observing(recording) else None
        start = PythonFileWriter if library is None else library.FileWriter
        self.aside = None if self.replaces else set_aside(self.folder)
        self.writer = CallWriter(self.folder, head, self.max_bytes, start)
        self.contents = self._contents(library)
        self.taker = CallTaker(self.contents, state)
        self.rows = CapturedRows()
        is_filtered = self.selection != Selection() or self.phases != EVERY_PHASE or self.calls is not None
        self.chooses = is_filtered or self.only is not None
        self.stopped: str | None = None
        self.error: OSError | None = None
        self.running: list[Running] = []
        with super().below(recording, modules):
            if isinstance(self.contents, NativeContents):
                self.observed = ObservedCalls(self, self.contents)
                self.native = library.Capturer(self.observed)
                self._ask_each()
            try:
                yield
            finally:
                if self.native is not None:
                    self.native.hand_over()
                self._flush(self.writer.flush)  # is written while the frames are built

    def _contents(self, native: Any) -> KnownContents:
        reference = ReferencedParameters(self.parameters).reference if self.parameters is not None else None
        return (
            KnownContents(self.writer.put, reference)
            if native is None
            else NativeContents(native, self.writer, reference)
        )

    def _ask_each(self) -> None:
        """Tells the library whether each call is chosen here, else all are captured, and whether space runs out."""
        if self.native is not None:
            self.native.tell_each(self.writer.is_nearly_full)
            self.native.ask_each(self.chooses or self.stopped is not None or len(self.running) > 0)

    def is_observing(self, recording: Recording) -> bool:
        return recording.native is not None and not self.intercepts

    def leaves_out(self, traits: OpTraits) -> str | None:
        if not hasattr(traits.func, "_schema"):
            return traits.leave_out
        if traits.func.namespace in MARKERS | COLLECTIVES and traits.name not in RUNS:
            return traits.leave_out
        return None

    def skipped(self, reason: str) -> str:
        return f"not captured: {reason}"

    def refuses(self, call: Intercepted) -> str | None:
        if self.stopped is not None:
            return self.stopped
        if self.only is not None and (call.traits.name, call.number) not in self.only:
            return "calls that only= does not name"
        return None if all(map(is_plain, call.tensors())) else "tensor subclasses"

    def lets_run(self, call: Intercepted) -> None:
        self._complete(call.mode)
        if call.traits.is_writing and self.contents:
            call.mode.isolated(lambda: self._forget_written(call), lambda error: None)

    def run(self, call: Intercepted) -> Any:
        taken = self.begin(call)
        try:
            out = call.run()
        except Exception as error:
            if taken is not None:
                self.raised(call, taken, error)
            raise
        if taken is not None:
            self.end(call, taken, out)
        return out

    def begin(self, call: Intercepted) -> Taken | None:
        """Takes what a chosen call reads from, before it runs; returns None where it cannot be captured."""
        self._complete(call.mode)
        state = call_state()
        arguments = call.traits, call.args, call.kwargs, call.number, state
        taken: Taken | None = call.mode.isolated(lambda: self.taker.before(*arguments), self._trouble(call))
        if taken is None:
            self.lets_run(call)
        return taken

    def begin_again(self, call: Intercepted, names: list[str], spans: tuple[Span, ...]) -> Taken | None:
        """Returns what begin() would have, of a call that has run; its inputs and the parts of them have been named."""
        arguments = call.traits, call.args, call.kwargs, call.number, call_state(), names, spans
        taken: Taken | None = call.mode.isolated(lambda: self.taker.before(*arguments), self._trouble(call))
        return taken

    def end(self, call: Intercepted, taken: Taken, out: Any) -> None:
        """Saves a call that has run, with what it has returned and written to."""
        if call.traits.name in RUNS:
            self.running.append(Running(call, taken, out))
            self._ask_each()
            return
        call.mode.isolated(lambda: self._add(call, self.taker.after(taken, out)), self._trouble(call))

    def add_lines(self, lines: bytes, ends: bytes, slots: bytes, ops: list[str], numbers: bytes) -> None:
        """Adds calls whose records the library has made: their lines, where each ends, and numbers in int64."""
        count = self.writer.add_lines(lines, array("q", ends))
        self.rows.add(array("q", slots)[:count], ops[:count], array("q", numbers)[:count])
        if left := len(ops) - count:
            self._stop(FullError())
            self.mode.skipped[str(self.stopped)] += left
        self._ask_each()
        self._flush(self.writer.flush_once_in_a_while)

    def trouble(self, call: Intercepted, error: Exception) -> None:
        """Counts a call that could not be saved."""
        self._trouble(call)(error)

    def raised(self, call: Intercepted, taken: Taken, error: BaseException) -> None:
        """Saves a call that has raised."""
        call.mode.isolated(lambda: self._add(call, self.taker.raised(taken, error)), self._trouble(call))

    def _complete(self, mode: InterceptMode) -> None:
        """Saves the collectives that have completed, in their order; before anything else writes to their results."""
        for one in self.running:
            if one.record is None and one.is_completed():
                one.record = mode.isolated(lambda: self.taker.after(one.taken, one.out), self._trouble(one.call)) or {}  # noqa: B023
        while self.running and (record := self.running[0].record) is not None:
            self._add_completed(self.running.pop(0), record)
            self._ask_each()

    def _add_completed(self, one: Running, record: Record) -> None:
        if record:
            one.call.mode.isolated(lambda: self._add(one.call, record), self._trouble(one.call))

    def progress(self) -> str:
        return f"{units.counted(len(self.rows), 'call')} captured, {units.data_size(self.writer.size_bytes)}"

    def frames(self, trace: Trace, ops: pd.DataFrame, op_ids: np.ndarray) -> tuple[Frames, Meta]:
        if self.observed is not None:
            self.observed.ended(self.recording.error)
            self.recording.spent.add_all(self.native.spent())
        self._complete(self.mode)
        for one in self.running:
            if one.record is None:
                self.mode.skipped["collectives that had not completed when the recording ended"] += 1
            else:
                self._add_completed(one, one.record)
        ids = op_ids if self.observed is not None else self.mode.rows.op_ids(op_ids)
        frame = self.rows.frame(self.recording.op_places, ids)
        places = places_text(frame)
        notes = [*self._told_aside(), *self._finish()]  # after what can be done while threads write
        super().frames(trace, ops, op_ids)
        if len(self.rows) < len(frame):
            frame = frame.iloc[: len(self.rows)]
        if self.error is None:
            try:
                self.writer.close(places)
            except TraceError as error:  # the step has run, and its trace is not to be lost with the folder
                notes.append(str(error))
        meta = {
            "folder": self.folder.name,  # a report goes to others, and paths tell of this machine
            "captured_calls": len(frame),
            "captured_bytes": self.writer.size_bytes,
            "notes": notes,
        }
        return {"captures": frame}, meta

    def _told_aside(self) -> list[str]:
        if self.aside is None:
            return []
        return [f"The calls that were in {self.folder.name} are in {self.aside.name} now; replace=True deletes them."]

    def _flush(self, flush: Callable[[], None]) -> None:
        try:
            flush()
        except OSError as error:
            self._stop(error)
            self._ask_each()

    def _finish(self) -> list[str]:
        """Waits for what is written; what is not is no captured call. Returns what a user is to know of it."""
        self._flush(self.writer.finish)
        if lost := len(self.rows) - self.writer.written_calls:
            self.rows.cut(self.writer.written_calls)
            self.mode.skipped[self.stopped or "calls that were not written"] += lost
        if self.error is not None:
            return [f"Not all captured calls could be written to {self.folder}: {why_not(self.folder, self.error)}"]
        return [self.stopped] if self.stopped is not None else []

    def forget(self) -> None:
        super().forget()
        self.native = self.observed = None
        del self.writer, self.contents, self.taker, self.rows, self.running

    def _add(self, call: Intercepted, record: Record) -> None:
        self.writer.add(record)
        row = call.slot if self.observed is not None else call.seen  # which the mode knows the row of at the end
        self.rows.add((row,), (call.traits.name,), (call.number,), record.get("raised"))
        self._flush(self.writer.flush_once_in_a_while)

    def _trouble(self, call: Intercepted) -> Any:
        def tell(error: Exception) -> None:
            if isinstance(error, FullError | OSError):
                self._stop(error)
            reason = self.stopped or str(error)
            if not isinstance(error, FullError | OSError | NotCapturedError):
                reason = f"{call.traits.name}: {type(error).__name__}: {first_line(error)}"
            call.mode.skipped[reason] += 1
            self._ask_each()

        return tell

    def _stop(self, error: FullError | OSError) -> None:
        if isinstance(error, FullError):
            self.stopped = f"max_bytes={self.max_bytes:,} is used up"
        else:
            self.error = error
            self.stopped = f"the folder cannot be written to ({error.strerror or first_line(error)})"

    def _forget_written(self, call: Intercepted) -> None:
        for tensor in written_tensors(call.traits, call.args, call.kwargs):
            self.contents.changed(self.contents.memory(tensor))
