"""Runs a cell under a magic: options before it, recording around it, the trace stored, shown and saved after."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Literal

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from nbkit.errors import NbkitError, TraceError
from nbkit.magics.cell_magic import CellMagic, Repeating
from nbkit.trace.storage import check_save_path
from nbkit.trace.trace import Trace
from nbkit.verbs.options.parser import telling_new_folders

EMPTY_CELL = "The cell is empty, so nothing was recorded."
AWAITED = "the cell awaited: ops that other asyncio tasks ran in the meantime are recorded too"


def show_text(text: str) -> None:
    """Show plain text as an output of the cell."""
    display({"text/plain": text}, raw=True)


class CellSession:
    """Context manager around the cell's own code.

    Building it checks the options and raises UsageError on a bad one, so that the cell does not run. Leaving it stores
    the trace as `_VERB` and under `--output`, shows it and saves it, also after an exception, which is never swallowed.
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
            self._recording = magic.recorder.record(self._options)

    def __enter__(self) -> Trace:
        with self._usage_errors():
            self._trace = self._recording.__enter__()
        return self._trace

    def rounds(self) -> Iterator[object]:
        """Yields one item per run of the cell's code that is due: one, unless the options ask for more."""
        if not isinstance(self._recording, Repeating):
            yield None
            return
        with self._usage_errors():
            yield from self._recording.rounds()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> Literal[False]:
        try:
            self._recording.__exit__(kind, error, traceback)
        finally:
            if self._awaits:
                self._trace.meta.setdefault("notes", []).append(AWAITED)
            self._store()
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
            raise UsageError(f"%%{self._magic.name}: {error}") from error
