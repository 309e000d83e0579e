"""Records a model step, with the observers of the verbs that look at its ops."""

from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack
from time import perf_counter_ns
from types import TracebackType
from typing import Any, Literal

import numpy as np
import pandas as pd
from torch._ops import OpOverload

from nbkit import units
from nbkit.capture.distributed.collective_recording import CollectiveRecording
from nbkit.capture.frames.build import build, machine_text, now_text, versions
from nbkit.capture.frames.op_rows import without_spans
from nbkit.capture.frames.selection import Selection
from nbkit.capture.hang.after_error import save_after_error
from nbkit.capture.native.library import library, own_work
from nbkit.capture.raw.flat_list import FlatList
from nbkit.capture.raw.recording import Recording, next_sequence_number
from nbkit.capture.raw.running import check_nesting, running
from nbkit.capture.raw.statistics import Statistics
from nbkit.capture.recorder.dispatch_mode import OpMode
from nbkit.capture.recorder.observed_ops import ObservedOps
from nbkit.capture.recorder.observer import Frames, Meta, Observer
from nbkit.capture.recorder.overhead import call_overheads_us, recorder_us
from nbkit.capture.recorder.starting import Startable
from nbkit.capture.step.compiled import CompiledRegions
from nbkit.capture.step.function_mode import ApiMode
from nbkit.capture.step.module_calls import ModuleCalls
from nbkit.capture.step.optimizer_steps import OptimizerSteps
from nbkit.capture.step.tracebacks import came_from_op, failed_at, without_our_frames
from nbkit.errors import OptionError
from nbkit.progress import Progress
from nbkit.schema.message import message_values
from nbkit.trace.gc_paused import gc_paused
from nbkit.trace.trace import Trace

# Of the latest recordings: how many ops each has, and some of them.
MILESTONES, LEAST_MET = 200, 3
RECENT: deque[tuple[int, dict[int, OpOverload]]] = deque(maxlen=16)


class Recorder(Startable[Trace]):
    """Records every op run inside it, as a context manager with any number of observers; gives a Trace.

    Observers share the one recording: its frames are theirs, and each adds its own. Of each kind there is one at most.
    """

    verb = "optrace"  # what the trace says it was made by
    notes: Sequence[str] = ()  # that are known before it begins

    def __init__(
        self,
        *observers: Observer,
        selection: Selection | None = None,
        values: Literal["stats"] | None = None,
        inner_ops: bool = False,
        threads: Literal["current", "all"] = "current",
        name: str | None = None,
    ) -> None:
        assert len({type(observer) for observer in observers}) == len(observers)
        self.observers = observers
        self.selection = selection or Selection()
        self.values = values
        self.inner_ops = inner_ops
        self.threads = threads
        self.name = name or self.verb
        self.trace: Trace | None = None
        self.ended = False

    def __enter__(self) -> Trace:
        if self.trace is not None:
            raise OptionError(f"This {self.verb} has been used already; make a new one for each recording.")
        check_nesting(self.verb)
        self.progress = Progress(self._progress, done=self._done).__enter__()
        try:
            with own_work():
                self._begin()
        except BaseException:
            self.progress.__exit__(None, None, None)
            raise
        assert self.trace is not None
        self.running.append(self)
        self.recording.start = perf_counter_ns()
        return self.trace

    def _begin(self) -> None:
        # What torch's observer calls reads no values, and runs no ops.
        needs_python = self.values is not None or any(observer.is_around() for observer in self.observers)
        native = None if needs_python else library()
        call_overheads_us(native)  # measured before the first recording, outside of all
        self.trace = Trace()
        self.recording = Recording(native)
        self._install(self.recording)
        self.running = running()

    def _install(self, recording: Recording) -> None:
        self.statistics = Statistics(recording) if self.values == "stats" else None
        self.api = ApiMode(recording)
        self.modules = ModuleCalls(recording, self.api, self.threads == "all")
        self.optimizers = optimizers = OptimizerSteps(recording, self.api)
        self.collectives = CollectiveRecording()
        ops: ObservedOps | OpMode
        if recording.native is None:
            ops = OpMode(recording, self.statistics, optimizers.on_range, self.observers)
            compiled = CompiledRegions(recording, self.api, self.modules, optimizers)
        else:
            in_all_threads = self.threads == "all"
            ops = ObservedOps(recording, optimizers.on_range, self.observers, self.inner_ops, in_all_threads)
            # What torch.compile runs itself is no work of the step; a dispatch mode does not see it.
            compiled = CompiledRegions(recording, self.api, self.modules, optimizers, on_compile=ops.pause)
        with ExitStack() as stack:
            for observer in self.observers:
                stack.enter_context(observer.below(recording, self.modules))
            for part in (self.modules, optimizers, self.collectives, compiled):
                part.install()
                stack.callback(part.remove)
            stack.enter_context(self.api)
            stack.enter_context(ops)
            self.exits = stack.pop_all()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.recording.end = perf_counter_ns()
        self.recording.last_sequence = next_sequence_number()
        try:
            with own_work():
                self._end(error)
        finally:
            self.progress.__exit__(None, None, None)
            del self.progress  # it calls this object: a circle would keep the trace until the next full collection

    def _progress(self) -> str:
        """Says how far the recording is; another thread asks, while the step runs."""
        recording = vars(self).get("recording")
        if recording is None or "exits" not in vars(self):  # the observers are not there yet
            return self.verb
        count = recording.ops.row_count
        told = f"{self.verb}: {units.counted(count, 'op')}"
        if self.ended:
            return f"{told}, building frames"
        last = recording.ops.value(count - 1, "name") if count else None
        names = [f"last {last}"] if isinstance(last, str | OpOverload) else []
        return ", ".join([told, *filter(None, (observer.progress() for observer in self.observers)), *names])

    def _done(self) -> float | None:
        """Returns which part of the step has run, as a recent recording of the same ops tells; null without one."""
        recording = vars(self).get("recording")
        return None if recording is None or self.ended else part_done(recording.ops)

    def _end(self, error: BaseException | None) -> None:
        getters = self.api.getters
        self.ended = True
        is_outermost = self.running[0] is self
        # Modes are a stack: a recording that ends before one that began later takes its own away with that one's.
        removed: list[Recorder] = []
        while self.running and self.running[-1].ended:
            removed.append(self.running.pop())
            removed[-1].exits.close()
        from_op = error is not None and came_from_op(error, self.recording)
        self.recording.error = error if from_op else None
        own_failure = None if error is None else failed_at(error)
        if error is None:
            RECENT.append((self.recording.ops.row_count, milestones(self.recording.ops)))
        if error is not None and is_outermost and own_failure is None:
            without_our_frames(error)
        with gc_paused():
            self._fill(error, from_op, getters, own_failure)
            for recorder in removed:
                recorder._forget()
        if error is not None and is_outermost:
            assert self.trace is not None
            save_after_error(self.trace, error)

    def _fill(self, error: BaseException | None, from_op: bool, getters: int, own_failure: str | None) -> None:
        assert self.trace is not None
        recording = self.recording
        frames, built = build(recording, self.modules, self.optimizers.met, self.statistics, self.selection, getters)
        failed, op_ids, accumulating = (built.pop(name) for name in ("failed_op_id", "op_ids", "accumulating"))
        process = self.collectives.add_to(frames, (recording.start, recording.end), self._to_us, accumulating)
        ops = frames["ops"]
        added: list[tuple[Frames, Meta]] = [observer.frames(self.trace, ops, op_ids) for observer in self.observers]
        meta: Meta = {
            "verb": self.verb,
            "name": self.name,
            "created": now_text(),
            "complete": error is None,
            "error": None if error is None else describe_error(error, failed if from_op else None, ops, own_failure),
            "versions": versions(),
            "machine": machine_text(),
            "wall_us": (recording.end - recording.start) / 1e3,
            "recorder": "python" if recording.native is None else "observer",
            "recorder_us": recorder_us(recording),
            **built,
            **process,
            "notes": [*self.notes, *built["notes"], *process.get("notes", [])],
        }
        for more_frames, more in added:
            frames |= more_frames
            meta |= {**more, "notes": [*meta["notes"], *more.get("notes", [])]}
        for observer in self.observers:
            frames, meta = observer.completed(frames, meta)
        self.trace._fill(frames, meta)

    def _to_us(self, times: np.ndarray) -> np.ndarray:
        """Returns moments, ns of perf_counter_ns(), as times of ops."""
        return (without_spans(times, self.recording.spent.array()) - self.recording.start) / 1e3

    def _forget(self) -> None:
        """Lets go of weak references and raw rows: of no use any more, and a kept recorder should weigh nothing."""
        for observer in self.observers:
            observer.forget()
        vars(self.recording.registry).clear()
        del self.recording, self.statistics, self.api, self.modules, self.optimizers, self.collectives
        del self.exits, self.running


def milestones(ops: FlatList) -> dict[int, OpOverload]:
    """Returns ops of a recording by their row, some of each part, by which the same step is known again."""
    every = max(ops.row_count // MILESTONES, 1)
    names = {row: ops.value(row, "name") for row in range(0, ops.row_count, every)}
    return {row: name for row, name in names.items() if isinstance(name, OpOverload)}


def part_done(ops: FlatList) -> float | None:
    """Returns which part of a step its ops so far are, by the latest recording that began with the same."""
    count = ops.row_count - 1  # the last row may still be written
    for total, known in reversed(RECENT):
        met = [row for row in known if row < count]
        if count < total and len(met) >= LEAST_MET and all(ops.value(row, "name") is known[row] for row in met):
            return float(count / total)
    return None


def describe_error(
    error: BaseException, failed: int | None, ops: pd.DataFrame, own_failure: str | None
) -> dict[str, Any]:
    """Describes what stopped the recorded code: type, message, the op that raised it, if one did, or line of nbkit."""
    source = ops["source"].iloc[failed] if failed is not None else None
    return {
        "type": type(error).__name__,
        "message": str(error),
        "message_values": message_values(error.args[0]) if error.args else None,
        "op_id": failed,
        "source": source if isinstance(source, str) else None,
        "failed_in_nbkit": own_failure,
    }
