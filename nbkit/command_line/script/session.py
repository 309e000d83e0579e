"""ScriptSession runs a script once, with its steps given to a recorder."""

import ast
import sys
from argparse import Namespace
from collections.abc import Callable

from nbkit.command_line.script.importing import StepFinder
from nbkit.command_line.script.rewriting import functions
from nbkit.command_line.script.running import Script, compiled, run, script_file, script_module
from nbkit.command_line.script.steps import Steps
from nbkit.command_line.script.target import Target, read_target

MOST_NAMES = 12


class ScriptSession:
    """Runs the script that `options` name, with the step that they name; made when both are known to be usable."""

    def __init__(self, options: Namespace) -> None:
        name, *arguments = options.target
        self.script = script_module(name, arguments) if options.module else script_file(name, arguments)
        self.target = None if options.step is None else read_target(options.step, self.script.path)
        self.finder = None if self.target is None or self.target.is_in_script else StepFinder(self.target)
        self.code = compiled(self.script, self.target)
        options.name = options.name or " ".join([self.script.name, *([options.step] if options.step else [])])

    def run(self, steps: Steps, report: Callable[[], int]) -> int:
        """Returns the exit status where it is ours to say, that of report(), which is called when the script is over.

        The script's own exceptions pass through.
        """
        if self.finder is not None:
            sys.meta_path.insert(0, self.finder)
        try:
            run(self.script, self.code, steps, is_step=self.target is None)
        except SystemExit as ended:
            status = report()
            if ended.code not in (None, 0):
                raise
            return status
        except BaseException:
            report()
            raise
        return report()

    def never_met(self) -> str:
        """Returns why no step came, in one sentence."""
        assert self.target is not None
        if self.finder is not None and self.finder.problem is not None:
            return f"--step {self.target.text} was never met: {self.finder.problem}."
        return f"--step {self.target.text} was never met: {_never(self.script, self.target)}"


def _never(script: Script, target: Target) -> str:
    if target.name is None:
        return "the loop had no pass."
    if not target.is_in_script:
        return "it was never called."
    known = [name for name, _ in functions(ast.parse(script.path.read_bytes())) if name != target.name]
    hint = f"; the script also defines {', '.join(known[:MOST_NAMES])}" if known else ""
    return f"it was never called{hint}."
