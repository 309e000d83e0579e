"""Begins and ends a recording by calls, such as in two cells of a notebook, where no `with` block can hold it."""

from contextlib import AbstractContextManager
from threading import get_ident, local
from types import TracebackType
from typing import Self, TypeVar

from nbkit.errors import OptionError
from nbkit.progress import Progress, no_progress

Result = TypeVar("Result", covariant=True)
_thread = local()


def _open() -> "list[Startable[object]]":
    """Returns what start() began in this thread and stop() has not ended, outermost first."""
    recorders: list[Startable[object]] = vars(_thread).setdefault("started", [])
    return recorders


class Startable(AbstractContextManager[Result]):
    """Gives a recorder start() and stop(), which do what a `with` block does at its begin and its end.

    What runs between the two is recorded, whatever cells it is in. An exception there ends its own cell alone: the
    recording goes on until stop(), and its trace counts as complete. Like a `with` block it records the thread that it
    began in, which is the one that ends it.
    """

    _begun_in: int | None = None  # the thread
    _gives: Result

    def __enter__(self) -> Result:
        raise NotImplementedError

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        raise NotImplementedError

    def __repr__(self) -> str:
        if self not in _open():
            return super().__repr__()
        return f"<{type(self).__name__}, recording since start(); stop() gives its trace>"

    def start(self) -> Self:
        """Begins what stop() ends, and returns this recorder.

        Raises OptionError where this recorder has been used already, and where this thread has one of the same verb
        that was started and not stopped (`started()` returns it): a cell that runs twice starts one.
        """
        name = type(self).__name__
        if self in _open():
            raise OptionError(f"This {name} is recording already, since start(); call its stop() before you start one.")
        if self.started() is not None:
            raise OptionError(
                f"Another {name} is recording, since its start(); call its stop() first, or nbkit.{name}.started()."
                f"stop() if you have no name for it."
            )
        with no_progress():  # what comes until stop() is work of nobody's, between cells
            self._gives = self.__enter__()
        self._begun_in = get_ident()
        _open().append(self)
        return self

    def stop(self) -> Result:
        """Ends what start() began; returns what a `with` block gives, filled.

        Raises OptionError without start(), after another stop(), and in another thread than that of start().
        """
        name = type(self).__name__
        if self not in _open():
            why = f"is not recording; call start() of a new {name} first, or use it as a with block"
            if self._begun_in is not None:
                why = "was started in another thread; call stop() there"
            raise OptionError(f"This {name} {why}.")
        _open().remove(self)
        self._begun_in = None
        with Progress(lambda: f"{name}: building frames"):
            self.__exit__(None, None, None)
        return self._gives

    @classmethod
    def started(cls) -> Self | None:
        """Returns the recorder of this verb that start() began in this thread and stop() has not ended; else None."""
        return next((one for one in _open() if type(one) is cls), None)
