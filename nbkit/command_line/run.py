"""Runs `python -m nbkit run`: a script with its steps recorded."""

from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from nbkit import units
from nbkit.command_line.parser import bad_use
from nbkit.command_line.run_options import read_options
from nbkit.command_line.script.recorders import recorder_of
from nbkit.command_line.script.session import ScriptSession
from nbkit.command_line.script.steps import Steps
from nbkit.command_line.terminal import Narrator
from nbkit.errors import TraceError
from nbkit.trace.storage import META, check_save_path, of_this_process
from nbkit.trace.trace import Trace
from nbkit.verbs.options.parser import telling_new_folders
from nbkit.verbs.registry import RECORDERS, has_findings
from nbkit.verbs.verb import BAD_USE, FINDINGS, FINE


class Session:
    """Runs a script once; made when all is known to be usable."""

    def __init__(self, options: Namespace) -> None:
        self.options, self.narrator = options, Narrator()
        self.session = ScriptSession(options)
        verb = RECORDERS[options.verb]
        is_split = options.steps > 1 and not verb.is_repeated
        self.output = Output(of_this_process(options.output), self.narrator, is_split=is_split)
        recorder = recorder_of(verb, options, self.output.keep, is_named=self.session.target is not None)
        self.steps = Steps(recorder, skip=options.skip, count=options.steps, stops=options.stop_after)

    def run(self) -> int:
        """Returns the exit status where it is ours to say; the script's own exceptions pass through."""
        return self.session.run(self.steps, self._report)

    def _report(self) -> int:
        """Say what was recorded, and what was not and why; the exit status of that."""
        self.steps.finish()
        output = self.output
        problem = output.problem or self.steps.problem
        if not self.options.quiet and output.last is not None:
            self.narrator.show(output.last.summary())
        if output.saved and not self.options.quiet:
            traces = units.counted(len(output.saved), "trace")
            self.narrator.say(f"saved {traces} to {self.options.output}")
        for note in output.notes:
            self.narrator.say(note)
        missing = problem or _shortfall(self.session, self.steps)
        if missing:
            self.narrator.say(missing)
        if problem or not output.saved:
            return BAD_USE
        return FINDINGS if self.options.fail_on_findings and output.has_findings else FINE


def _shortfall(session: ScriptSession, steps: Steps) -> str | None:
    """Returns why fewer steps were recorded than wanted, in one sentence; None if there were enough."""
    if steps.is_inside:
        return "A step had not ended when the script was over, so it is not recorded."
    if session.target is None or steps.missing == 0:
        return None
    if steps.met == 0:
        return session.never_met()
    times = "once" if steps.met == 1 else f"{steps.met} times"
    text = session.target.text
    if steps.met <= steps.skip:
        return f"--step {text} ran {times} only, and --skip {steps.skip} leaves that out; give a smaller --skip."
    return f"--step {text} ran {times} only, so {steps.missing} of the steps asked for are missing."


def _run(words: Sequence[str]) -> int:
    options = read_options(words)
    with bad_use(RUN.name):
        session = Session(options)
    return session.run()


@dataclass(frozen=True)
class RunCommand:
    """The subcommand that is no verb: its options are those of a verb, and what follows them belongs to the script."""

    name: str
    summary: str
    example: str
    run: Callable[[Sequence[str]], int]


RUN = RunCommand("run", "run a script with its steps recorded", "run -o trace --step train_step train.py", _run)


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
