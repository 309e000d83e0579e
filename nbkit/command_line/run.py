"""Runs `python -m nbkit run`: a script with its steps recorded."""

from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nbkit import units
from nbkit.command_line.parser import bad_use
from nbkit.command_line.run_options import read_options
from nbkit.command_line.script.output import Output
from nbkit.command_line.script.recorders import recorder_of
from nbkit.command_line.script.session import ScriptSession
from nbkit.command_line.script.steps import Steps
from nbkit.command_line.terminal import Narrator
from nbkit.trace.storage import of_this_process
from nbkit.verbs.registry import RECORDERS
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
