"""Runs `python -m nbkit`: finds the subcommand, `run` or one of a verb, reads its options and runs it."""

import sys
from collections.abc import Sequence

from nbkit.command_line.audit import AUDIT
from nbkit.command_line.doctor import DOCTOR
from nbkit.command_line.mcp import MCP
from nbkit.command_line.parser import CommandParser, bad_use
from nbkit.command_line.run import RUN, RunCommand
from nbkit.command_line.terminal import Narrator, show
from nbkit.errors import nearest
from nbkit.verbs.options.parser import HELP_OPTIONS, telling_new_folders
from nbkit.verbs.registry import VERBS, has_findings
from nbkit.verbs.verb import BAD_USE, FINDINGS, FINE, PROGRAM, Command

_OF_VERBS: dict[str, Command] = {verb.command.name: verb.command for verb in VERBS.values() if verb.command is not None}
_OF_SCRIPTS = {command.name: command for command in (RUN, DOCTOR, AUDIT)}
_OF_TRACES: dict[str, Command] = {**_OF_VERBS, MCP.name: MCP}
COMMANDS: dict[str, RunCommand | Command] = {**_OF_SCRIPTS, **_OF_TRACES}


def main(words: Sequence[str]) -> int:
    """Run the subcommand that the first word names; the exit status."""
    if not words or words[0] in HELP_OPTIONS:
        show(overview())
        return FINE if words else BAD_USE
    if words[0] not in COMMANDS:
        sys.stderr.write(f"{PROGRAM}: {words[0]!r} is no subcommand; {nearest(words[0], COMMANDS)}\n")
        return BAD_USE
    if words[0] in _OF_SCRIPTS:
        return _OF_SCRIPTS[words[0]].run(words[1:])
    return _run(_OF_TRACES[words[0]], words[1:])


def _run(command: Command, words: Sequence[str]) -> int:
    parser = CommandParser(command.name, command.description)
    command.add_options(parser)
    options = parser.parse_words(words)
    narrator = Narrator()
    with bad_use(command.name), telling_new_folders(vars(options).values(), narrator.say):
        outcome = command.run(options, narrator.progress)
    if outcome.text is not None:
        show(outcome.text)
    fails = getattr(options, "fail_on_findings", False) and any(map(has_findings, outcome.traces))
    return FINDINGS if fails else outcome.status


def overview() -> str:
    """Returns the subcommands, each with an example."""
    lines = ["Debug PyTorch models op by op, from a terminal.", "", f"usage: {PROGRAM} COMMAND [OPTIONS]", ""]
    for command in COMMANDS.values():
        lines += [f"  {command.name:<8}{command.summary}", f"          {PROGRAM} {command.example}"]
    return "\n".join([*lines, "", f"Run {PROGRAM} COMMAND --help for details."])
