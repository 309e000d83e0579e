"""Runs `python -m nbkit run`: a script with its steps recorded."""

import ast
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from nbkit.command_line.parser import bad_use
from nbkit.command_line.run_options import read_options
from nbkit.command_line.script.importing import StepFinder
from nbkit.command_line.script.output import Output
from nbkit.command_line.script.recorders import recorder_of
from nbkit.command_line.script.rewriting import functions
from nbkit.command_line.script.running import Script, compiled, run, script_file, script_module
from nbkit.command_line.script.steps import Steps
from nbkit.command_line.script.target import Target, read_target
from nbkit.command_line.terminal import Narrator
from nbkit.verbs.registry import RECORDERS
from nbkit.verbs.verb import BAD_USE, FINDINGS, FINE
from nbkit.views.summary import units

MOST_NAMES = 12


class Session:
    """Runs a script once; made when all is known to be usable."""

    def __init__(self, options: Namespace) -> None:
        self.options, self.narrator = options, Narrator()
        name, *arguments = options.target
        self.script = script_module(name, arguments) if options.module else script_file(name, arguments)
        self.target = None if options.step is None else read_target(options.step, self.script.path)
        self.finder = None if self.target is None or self.target.is_in_script else StepFinder(self.target)
        self.code = compiled(self.script, self.target)
        options.name = options.name or " ".join([self.script.name, *([options.step] if options.step else [])])
        verb = RECORDERS[options.verb]
        is_split = options.steps > 1 and not verb.is_repeated
        self.output = Output(_folder(options.output), self.narrator, is_split=is_split)
        recorder = recorder_of(verb, options, self.output.keep, is_named=self.target is not None)
        self.steps = Steps(recorder, skip=options.skip, count=options.steps, stops=options.stop_after)

    def run(self) -> int:
        """Returns the exit status where it is ours to say; the script's own exceptions pass through."""
        if self.finder is not None:
            sys.meta_path.insert(0, self.finder)
        try:
            run(self.script, self.code, self.steps, is_step=self.target is None)
        except SystemExit as ended:
            status = self._report()
            if ended.code not in (None, 0):
                raise
            return status
        except BaseException:
            self._report()
            raise
        return self._report()

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
        missing = problem or _shortfall(self.script, self.target, self.finder, self.steps)
        if missing:
            self.narrator.say(missing)
        if problem or not output.saved:
            return BAD_USE
        return FINDINGS if self.options.fail_on_findings and output.has_findings else FINE


def _shortfall(script: Script, target: Target | None, finder: StepFinder | None, steps: Steps) -> str | None:
    """Returns why fewer steps were recorded than wanted, in one sentence; None if there were enough."""
    if steps.is_inside:
        return "A step had not ended when the script was over, so it is not recorded."
    if target is None or steps.missing == 0:
        return None
    if finder is not None and finder.problem is not None:
        return f"--step {target.text} was never met: {finder.problem}."
    if steps.met == 0:
        return f"--step {target.text} was never met: {_never(script, target)}"
    times = "once" if steps.met == 1 else f"{steps.met} times"
    if steps.met <= steps.skip:
        return f"--step {target.text} ran {times} only, and --skip {steps.skip} leaves that out; give a smaller --skip."
    return f"--step {target.text} ran {times} only, so {steps.missing} of the steps asked for are missing."


def _never(script: Script, target: Target) -> str:
    if target.name is None:
        return "the loop had no pass."
    if not target.is_in_script:
        return "it was never called."
    known = [name for name, _ in functions(ast.parse(script.path.read_bytes())) if name != target.name]
    hint = f"; the script also defines {', '.join(known[:MOST_NAMES])}" if known else ""
    return f"it was never called{hint}."


def _folder(folder: Path) -> Path:
    """Returns the folder of this process: of several that a launcher such as torchrun has started, each has its own."""
    rank = os.environ.get("RANK")
    return folder / f"rank={rank}" if rank and os.environ.get("WORLD_SIZE", "1") != "1" else folder


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
