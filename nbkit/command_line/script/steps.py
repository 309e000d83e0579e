"""Steps counts the steps of a script as it runs and has the wanted ones recorded."""

import os
import sys
from contextlib import AbstractContextManager, nullcontext
from traceback import format_exception
from types import FrameType, TracebackType

from nbkit.command_line.script.recorders import Recorder
from nbkit.errors import NbkitError, nbkit_failed, place_in_nbkit, please_report

NOTHING: AbstractContextManager[None] = nullcontext()


class StopAfter(SystemExit):
    """Ends the script once the wanted steps are recorded, as sys.exit() would."""


class Steps:
    """Gives the context manager to run a step in; called where a step begins.

    The first `skip` steps run as they are, the next `count` are recorded, the rest runs as it is; or, with `stops`, the
    script ends there. One that begins inside another, or beside it in another thread, is no step of its own, nor is one
    in a forked process. `met` counts the steps up to the last one wanted, `is_inside` says whether one is running,
    `problem` why no more can be recorded.
    """

    def __init__(self, recorder: Recorder, *, skip: int = 0, count: int = 1, stops: bool = False) -> None:
        self._recorder, self.skip, self._last, self._stops = recorder, skip, skip + count, stops
        self._process = os.getpid()
        self.is_inside = False
        self.met = 0
        self.problem: str | None = None

    def __call__(self) -> AbstractContextManager[object]:
        if self.is_inside or self.met >= self._last or os.getpid() != self._process:
            return NOTHING
        return _Step(self, sys._getframe(1))

    def begin(self, frame: FrameType) -> bool:
        """Begins a step, in the code of `frame`; returns whether it is recorded."""
        self.is_inside = True
        self.met += 1
        if self.met <= self.skip:
            return False
        try:
            self._recorder.begin(self.met - 1, frame)
        except NbkitError as error:  # it must not reach the script, which runs on as without us
            self.problem = str(error)
            self.met = self._last
            return False
        except Exception as error:
            self._fail(error)
            return False
        return True

    def end(self, error: BaseException | None, *, is_recorded: bool) -> None:
        """Ends the step, with `error` if it raised."""
        self.is_inside = False
        if not is_recorded:
            return
        is_last = self.met == self._last
        try:
            if self._recorder.end(_real(error), is_last=is_last):
                self.met = self._last
        except Exception as failure:
            self._fail(failure)
        if is_last and error is None and self._stops:
            raise StopAfter(0)

    def _fail(self, error: Exception) -> None:
        """Notes that nbkit itself has failed, and records no more: the script runs on as without us."""
        failure = nbkit_failed(type(error).__name__, str(error), place_in_nbkit(error))
        sentence = please_report(f"{failure}, not the script; no more was recorded.")
        self.problem = f"{sentence}\n{''.join(format_exception(error))}"
        self.met = self._last

    @property
    def missing(self) -> int:
        """Returns how many of the wanted steps have not come."""
        return self._last - max(self.met, self.skip)

    def finish(self) -> None:
        """Ends the recording with the script: what has been recorded is all there will be."""
        self._process = 0  # that of nobody: what threads and exit handlers still do is no step
        self._recorder.finish()


class _Step:
    """Follows one step from its beginning to its end, however it ends."""

    def __init__(self, steps: Steps, frame: FrameType) -> None:
        self._steps, self._frame = steps, frame
        self._is_recorded = False

    def __enter__(self) -> None:
        self._is_recorded = self._steps.begin(self._frame)
        del self._frame

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._steps.end(error, is_recorded=self._is_recorded)


def _real(error: BaseException | None) -> BaseException | None:
    """Returns the error; None for `sys.exit()` at the end of a script."""
    return None if isinstance(error, SystemExit) and error.code in (None, 0) else error
