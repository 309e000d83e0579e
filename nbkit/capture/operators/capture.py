"""Saves the inputs, outputs and surroundings of chosen calls of a step in a folder (opcapture)."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from nbkit import units
from nbkit.capture.calls.collectives import RUNS, is_waited_for, works
from nbkit.capture.calls.encode import NotCapturedError
from nbkit.capture.calls.flagged import flagged_calls
from nbkit.capture.calls.memory import KnownContents, memory_of
from nbkit.capture.calls.parameters import Parameters, ReferencedParameters, checked_parameters
from nbkit.capture.calls.state import call_state
from nbkit.capture.calls.taking import CallTaker, Taken
from nbkit.capture.frames.build import machine_text, now_text, versions
from nbkit.capture.frames.selection import Selection
from nbkit.capture.operators.copies import is_plain
from nbkit.capture.operators.intercept import Intercepted, InterceptMode, Interceptor
from nbkit.capture.raw.recording import Recording
from nbkit.capture.recorder.observer import Frames, Meta
from nbkit.capture.recorder.recorder import Recorder
from nbkit.capture.replay.op_traits import COLLECTIVES, MARKERS, OpTraits, written_tensors
from nbkit.capture.scope.call_numbers import CallNumbers
from nbkit.capture.step.module_calls import ModuleCalls
from nbkit.errors import OptionError, first_line
from nbkit.patterns import Patterns
from nbkit.schema import CAPTURES
from nbkit.trace.calls.layout import Record
from nbkit.trace.calls.reading import PLACE_COLUMNS
from nbkit.trace.calls.writing import CallWriter, FullError
from nbkit.trace.checks import is_number
from nbkit.trace.trace import Trace

MAX_BYTES = 4 * 2**30


class opcapture(Recorder):  # noqa: N801  a context manager is named like the function it stands for
    """Saves chosen calls of a step in a folder, as a context manager, for opreplay; gives a Trace with `captures`.

    A record holds what the op read from before it ran, in-place changes included, what it returned and wrote, and what
    else decides its result: arguments, strides, aliases and storage offsets, the state of the generator that it draws
    from, gradient mode, number of threads. Forward, backward and optimizer ops are all calls of their own, so that the
    gradient of each argument is an output of the backward op. Memory that several tensors share is stored once, and so
    is memory that is read again unchanged. Memory that decides nothing is not stored: what views look at, what `copy_`,
    `fill_` and `out=` overwrite, what `empty` returns.

    The folder has values in safetensors and all else in JSON (see nbkit/trace/calls/layout.py). Records are written
    while the step runs: after a crash it holds all but those of the last second, whole. Calls that are not saved are
    counted in `meta["skipped"]` with the reason.

    Args:
        folder: where to save; captured calls that are there are replaced.
        ops: ops to save, as in optrace: `mm`, `aten.*norm*`, or an API call such as `linear`, which brings the forward
            ops below it; all if None.
        exclude_ops: leave out ops that fit.
        modules: only ops inside modules that fit, by their named_modules() path.
        exclude_modules: leave out ops inside modules that fit.
        phases: forward, backward, optimizer, other; all if None.
        calls: which calls of each op, counted from 0: "0", "0,2", "2:5", "10:"; all if None.
        only: a trace of the same step by opdiff or opcheck, or the folder of one: save only the calls that it found
            something wrong with.
        parameters: a model, or its state_dict, whose parameters the folder names in place of their values, until an op
            writes to them; give them to opreplay, too.
        max_bytes: how large the folder may get; from the first call that does not fit on, no more are saved.
        name: what the trace is called where it is shown.

    Raises:
        PatternError, OptionError, TraceError: before anything runs.
    """

    verb = "opcapture"

    def __init__(  # noqa: PLR0913  options of a verb, by keyword
        self,
        folder: str | Path,
        *,
        ops: Patterns = None,
        exclude_ops: Patterns = None,
        modules: Patterns = None,
        exclude_modules: Patterns = None,
        phases: Patterns = None,
        calls: CallNumbers = None,
        only: str | Path | Trace | None = None,
        parameters: Parameters | None = None,
        max_bytes: int = MAX_BYTES,
        name: str | None = None,
    ) -> None:
        if not isinstance(folder, str | Path) or not str(folder):
            raise OptionError(f"folder={folder!r} is no path; give the folder that the calls are to be saved in.")
        if not is_number(max_bytes) or max_bytes <= 0:
            raise OptionError(f"max_bytes={max_bytes!r} is no size; give a number of bytes above 0.")
        capturing = Capturing(Path(folder), Selection(ops, exclude_ops, modules, exclude_modules), phases, calls)
        capturing.only, capturing.max_bytes = _flagged(only), int(max_bytes)
        checked_parameters(parameters)
        capturing.parameters = parameters
        super().__init__(capturing, name=name)


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


class Capturing(Interceptor):
    """Saves chosen calls; adds the frame `captures`."""

    only: frozenset[tuple[str, int]] | None = None
    max_bytes = MAX_BYTES
    parameters: Parameters | None = None

    def __init__(self, folder: Path, selection: Selection, phases: Patterns = None, calls: CallNumbers = None) -> None:
        super().__init__(selection, phases, calls)
        self.folder = folder

    @contextmanager
    def below(self, recording: Recording, modules: ModuleCalls) -> Iterator[None]:
        state = call_state()
        head = {"created": now_text(), "versions": versions(), "machine": machine_text(), "state": state}
        self.writer = CallWriter(self.folder, head, self.max_bytes)
        self.contents = KnownContents(self.writer.put, ReferencedParameters(self.parameters).reference)
        self.taker = CallTaker(self.contents, state)
        self.rows: list[tuple[int, str, int, str | None]] = []  # slot, op, number, what it raised
        self.stopped: str | None = None
        self.running: list[Running] = []
        with super().below(recording, modules):
            yield

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
        if call.traits.is_writing and self.contents.known:
            call.mode.isolated(lambda: self._forget_written(call), lambda error: None)

    def run(self, call: Intercepted) -> Any:
        self._complete(call.mode)
        state = call_state()
        arguments = call.traits, call.args, call.kwargs, call.number, state
        taken: Taken | None = call.mode.isolated(lambda: self.taker.before(*arguments), self._trouble(call))
        if taken is None:
            self.lets_run(call)
            return call.run()
        try:
            out = call.run()
        except Exception as error:
            raised = error
            call.mode.isolated(lambda: self._add(call, self.taker.raised(taken, raised)), self._trouble(call))
            raise
        if call.traits.name in RUNS:
            self.running.append(Running(call, taken, out))
        else:
            call.mode.isolated(lambda: self._add(call, self.taker.after(taken, out)), self._trouble(call))
        return out

    def _complete(self, mode: InterceptMode) -> None:
        """Saves the collectives that have completed, in their order; before anything else writes to their results."""
        for one in self.running:
            if one.record is None and one.is_completed():
                one.record = mode.isolated(lambda: self.taker.after(one.taken, one.out), self._trouble(one.call)) or {}  # noqa: B023
        while self.running and (record := self.running[0].record) is not None:
            self._add_completed(self.running.pop(0), record)

    def _add_completed(self, one: Running, record: Record) -> None:
        if record:
            one.call.mode.isolated(lambda: self._add(one.call, record), self._trouble(one.call))

    def progress(self) -> str:
        return f"{units.counted(len(self.rows), 'call')} captured, {units.data_size(self.writer.size_bytes)}"

    def frames(self, trace: Trace, ops: pd.DataFrame, op_ids: np.ndarray) -> tuple[Frames, Meta]:
        self._complete(self.mode)
        for one in self.running:
            if one.record is None:
                self.mode.skipped["collectives that had not completed when the recording ended"] += 1
            else:
                self._add_completed(one, one.record)
        super().frames(trace, ops, op_ids)
        ids = self.op_ids([slot for slot, *_ in self.rows], op_ids)
        columns = {name: ops[name].array.take(ids, allow_fill=True) for name in PLACE_COLUMNS[1:]}
        names = [op for _, op, _, _ in self.rows]
        # Autograd calls some ops that torch's observer does not report: they stand in the op that they follow.
        is_own = ops["op"].array.take(ids, allow_fill=True) == np.array(names, dtype=object)
        frame = CAPTURES.frame(
            {
                "op_id": np.where(np.asarray(is_own, bool), ids, -1),
                "op": names,
                **columns,
                "call": [number for _, _, number, _ in self.rows],
                "record": range(len(ids)),
                "raised": [raised for *_, raised in self.rows],
            }
        )
        notes = [self.stopped] if self.stopped is not None else []
        try:
            self.writer.close({name: _plain(frame[name]) for name in PLACE_COLUMNS})
        except Exception as error:  # the step has run, and its trace is not to be lost with the folder
            notes.append(f"The captured calls could not be written to {self.folder}: {first_line(error)}.")
        meta = {
            "folder": self.folder.name,  # a report goes to others, and paths tell of this machine
            "captured_calls": len(frame),
            "captured_bytes": self.writer.size_bytes,
            "notes": notes,
        }
        return {"captures": frame}, meta

    def forget(self) -> None:
        super().forget()
        del self.writer, self.contents, self.taker, self.rows, self.running

    def _add(self, call: Intercepted, record: Record) -> None:
        self.writer.add(record)
        self.rows.append((call.slot, call.traits.name, call.number, record.get("raised")))

    def _trouble(self, call: Intercepted) -> Any:
        def tell(error: Exception) -> None:
            if isinstance(error, FullError):
                self.stopped = f"max_bytes={self.max_bytes:,} is used up"
            elif isinstance(error, OSError):
                self.stopped = f"the folder cannot be written to ({error.strerror or first_line(error)})"
            reason = self.stopped or str(error)
            if not isinstance(error, FullError | OSError | NotCapturedError):
                reason = f"{call.traits.name}: {type(error).__name__}: {first_line(error)}"
            call.mode.skipped[reason] += 1

        return tell

    def _forget_written(self, call: Intercepted) -> None:
        for tensor in written_tensors(call.traits, call.args, call.kwargs):
            self.contents.changed(memory_of(tensor).storage)


def _flagged(only: str | Path | Trace | None) -> frozenset[tuple[str, int]] | None:
    if only is None:
        return None
    return flagged_calls(Trace.load(only) if isinstance(only, str | Path) else only)


def _plain(column: pd.Series) -> list[Any]:
    return [None if pd.isna(value) else value for value in column.tolist()]
