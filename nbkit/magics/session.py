"""Runs a cell under a magic: options before it, recording around it, the trace stored, shown and saved after."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from traceback import format_exception
from types import TracebackType
from typing import Literal

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from nbkit.errors import NbkitError, TraceError, nbkit_failed, place_in_nbkit, please_report
from nbkit.magics.cell_magic import CellMagic, Repeating
from nbkit.trace.storage import check_save_path
from nbkit.verbs.notebook import Notebook
from nbkit.verbs.options.parser import telling_new_folders

EMPTY_CELL = "The cell is empty, so nothing was recorded."
REFUSED = "A run was refused, so nothing was recorded; the error of this cell says why."
AWAITED = "the cell awaited: ops that other asyncio tasks ran in the meantime are recorded too"


def show_text(text: str) -> None:
    """Show plain text as an output of the cell."""
    display({"text/plain": text}, raw=True)


class CellSession:
    """Context manager around the cell's own code.

    Building it checks the options and raises UsageError on a bad one, so that the cell does not run. Leaving it stores
    the trace as `_VERB` and under `--output`, shows it and saves it, also after an exception, which is never swallowed.
    Where nbkit itself fails, it says so: before the cell by an exception, after it beside what the cell came to.
    While the cell awaits, other asyncio tasks run in the same thread and what they do is recorded too.
    """

    def __init__(
        self, shell: InteractiveShell, magic: CellMagic, line: str, *, is_empty: bool = False, awaits: bool = False
    ) -> None:
        self._shell, self._magic, self._is_empty, self._awaits = shell, magic, is_empty, awaits
        self._options = magic.parser.parse_line(line)
        with self._usage_errors():
            if self._options.save is not None:
                check_save_path(self._options.save)
            self._recording = magic.recorder.record(self._options, Notebook(shell))
        self._refusal: NbkitError | None = None

    def __enter__(self) -> None:
        try:
            self._trace = self._recording.__enter__()
        except NbkitError as error:
            raise self._usage_error(error) from error
        except Exception as error:
            sys.stderr.write(self._told(f"{_failure(error)} before the cell began: it did not run."))
            raise

    def rounds(self) -> Iterator[object]:
        """Yields one item per run of the cell's code that is due: one, unless the options ask for more."""
        if not isinstance(self._recording, Repeating):
            yield None
            return
        try:
            yield from self._recording.rounds()
        except NbkitError as error:
            self._refusal = error
            raise self._usage_error(error) from error

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> Literal[False]:
        if error is not None and error.__cause__ is self._refusal is not None:
            error = self._refusal
        failure = ""
        try:
            self._recording.__exit__(None if error is None else type(error), error, traceback)
        except Exception as own:  # what the cell came to must reach the user unchanged
            sentence = f"{_failure(own)} after the cell had run, which changes nothing of it; there is no trace."
            failure = self._told(sentence, *format_exception(own))
        finally:
            if self._awaits:
                self._trace.meta.setdefault("notes", []).append(AWAITED)
            self._store()
        if failure:
            sys.stderr.write(failure)
            return False
        if not self._options.quiet:
            self._show()
        if self._options.save is not None:
            self._save(failed=error is not None)
        return False

    def _store(self) -> None:
        # Not push(): it would keep the trace in user_ns_hidden too, and `del` would not free it.
        self._shell.user_ns[f"_{self._magic.name}"] = self._trace
        if self._options.output is not None:
            self._shell.push({self._options.output: self._trace})

    def _show(self) -> None:
        sentence = EMPTY_CELL if self._is_empty else self._magic.recorder.nothing(self._trace)
        if sentence is not None and self._refusal is not None:
            sentence = REFUSED
        if sentence is None:
            display(self._trace)
        else:
            show_text(f"%%{self._magic.name}: {sentence}")

    def _save(self, *, failed: bool) -> None:
        try:
            with telling_new_folders([self._options.save], show_text):
                self._trace.save(self._options.save)
        except TraceError as error:
            name = self._options.output or f"_{self._magic.name}"
            sentence = f"%%{self._magic.name}: {error} The trace itself is kept as {name}."
            if not failed:
                raise UsageError(sentence) from error
            # The cell's own exception is on its way; it must reach the user unchanged.
            sys.stderr.write(f"{sentence}\n")

    @contextmanager
    def _usage_errors(self) -> Iterator[None]:
        try:
            yield
        except NbkitError as error:
            raise self._usage_error(error) from error

    def _usage_error(self, error: NbkitError) -> UsageError:
        return UsageError(f"%%{self._magic.name}: {error}")

    def _told(self, failure: str, *traceback: str) -> str:
        return f"{''.join(traceback)}%%{self._magic.name}: {please_report(failure)}\n"


def _failure(error: Exception) -> str:
    return nbkit_failed(type(error).__name__, str(error), place_in_nbkit(error))
