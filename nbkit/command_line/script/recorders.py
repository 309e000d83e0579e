"""Records the steps of a script in traces, one for each step or one for all."""

from argparse import Namespace
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import FrameType
from typing import Any, Protocol

from nbkit.trace.trace import Trace
from nbkit.verbs.verb import Recorder as VerbRecorder

# Called with each trace and the number of its step, from 0, as soon as it is recorded.
Keep = Callable[[Trace, int], None]


class Recorder(Protocol):
    """What records the steps that Steps counts."""

    def begin(self, number: int, frame: FrameType) -> None:
        """Begins the step of that number, in the code of `frame`. Raises NbkitError if it cannot be recorded."""

    def end(self, error: BaseException | None, *, is_last: bool) -> bool:
        """Ends the step; returns whether no more steps can be recorded."""

    def finish(self) -> None:
        """Ends the recording: no more steps come."""


class SingleSteps:
    """Records a trace for each step."""

    def __init__(self, record: Callable[[], AbstractContextManager[Trace]], keep: Keep) -> None:
        self._record, self._keep = record, keep

    def begin(self, number: int, frame: FrameType) -> None:
        self._number = number
        self._recording = self._record()
        self._trace = self._recording.__enter__()

    def end(self, error: BaseException | None, *, is_last: bool) -> bool:
        _leave(self._recording, error)
        self._keep(self._trace, self._number)
        del self._recording, self._trace
        return False

    def finish(self) -> None:
        pass


class RepeatedStep:
    """Records one trace, in which each step is a repeat; `recording` has begin_run() and end_run()."""

    def __init__(self, recording: Any, keep: Keep) -> None:
        self._recording, self._keep = recording, keep
        self._trace: Trace | None = None

    def begin(self, number: int, frame: FrameType) -> None:
        if self._trace is None:
            self._first = number
            self._trace = self._recording.__enter__()
        self._recording.begin_run()

    def end(self, error: BaseException | None, *, is_last: bool) -> bool:
        if error is None:
            self._recording.end_run()
        if is_last or error is not None:
            self._close(error)
        return error is not None

    def finish(self) -> None:
        self._close(None)

    def _close(self, error: BaseException | None) -> None:
        trace, self._trace = self._trace, None
        if trace is not None:
            _leave(self._recording, error)
            self._keep(trace, self._first)


def recorder_of(verb: VerbRecorder, options: Namespace, keep: Keep, *, is_named: bool) -> Recorder:
    """Makes the recorder of a verb; without `is_named` the whole script is the only step. Raises NbkitError."""
    if verb.is_repeated:
        warmup, repeats = (options.skip, options.steps) if is_named else (0, 0)
        options = Namespace(**{**vars(options), "warmup": warmup, "repeats": repeats})
    recording = verb.record(options)
    if verb.is_repeated and is_named:
        return RepeatedStep(recording, keep)
    return SingleSteps(lambda: verb.record(options), keep)


def _leave(recording: AbstractContextManager[Trace], error: BaseException | None) -> None:
    if error is None:
        recording.__exit__(None, None, None)
    else:
        recording.__exit__(type(error), error, error.__traceback__)
