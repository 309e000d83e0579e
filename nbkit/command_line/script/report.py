"""Says which steps were wanted and not recorded."""

import ast

from nbkit.command_line.script.importing import StepFinder
from nbkit.command_line.script.rewriting import functions
from nbkit.command_line.script.running import Script
from nbkit.command_line.script.steps import Steps
from nbkit.command_line.script.target import Target

MOST_NAMES = 12


def shortfall(script: Script, target: Target | None, finder: StepFinder | None, steps: Steps) -> str | None:
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
