"""Output saves the traces of a script, each as soon as it is recorded."""

from pathlib import Path

from nbkit.command_line.terminal import Narrator
from nbkit.errors import TraceError
from nbkit.trace.storage import META, check_save_path
from nbkit.trace.trace import Trace
from nbkit.verbs.options.parser import telling_new_folders
from nbkit.verbs.registry import has_findings


class Output:
    """Saves traces to `folder`, or, where several are wanted, to folders step=N in it; `last` is kept to be
    shown, `notes` are to be said at the end.

    Raises TraceError if the folder cannot take them.
    """

    def __init__(self, folder: Path, narrator: Narrator, *, is_split: bool = False) -> None:
        self._folder, self._narrator, self._is_split = folder, narrator, is_split
        if is_split and folder.is_dir() and any(folder.iterdir()):
            what = "is a trace" if (folder / META).is_file() else "is not empty"
            raise TraceError(f"{folder} {what}, and several steps go to a folder of their own; give another name.")
        check_save_path(folder / "step=0" if is_split else folder)
        self.saved: list[Path] = []
        self.notes: list[str] = []
        self.last: Trace | None = None
        self.has_findings = False
        self.problem: str | None = None

    def keep(self, trace: Trace, number: int) -> None:
        """Save the trace of the step `number`; an error must not reach the script and becomes `problem`."""
        path = self._folder / f"step={number}" if self._is_split else self._folder
        self._narrator.progress(f"recorded step {number}: {len(trace.frames.get('ops', ())):,} ops; saving")
        self.last = trace
        self.has_findings |= has_findings(trace)
        try:
            with telling_new_folders([self._folder], self.notes.append):
                self.saved.append(trace.save(path))
        except TraceError as error:
            self.problem = str(error)
