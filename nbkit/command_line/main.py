"""`python -m nbkit`: finds the subcommand; a new one joins by its own file and one entry in COMMANDS."""

import sys
from collections.abc import Sequence

from nbkit.command_line.command import BAD_USE, FINE, PROGRAM, Command
from nbkit.command_line.diff import DIFF
from nbkit.command_line.graph import GRAPH
from nbkit.command_line.info import INFO
from nbkit.command_line.load import LOAD
from nbkit.command_line.report import REPORT
from nbkit.command_line.run import RUN
from nbkit.command_line.terminal import show
from nbkit.errors import nearest
from nbkit.verbs.parser import HELP_OPTIONS

COMMANDS: dict[str, Command] = {command.name: command for command in (RUN, LOAD, GRAPH, REPORT, DIFF, INFO)}


def main(words: Sequence[str]) -> int:
    """Run the subcommand that the first word names; the exit status."""
    if not words or words[0] in HELP_OPTIONS:
        show(overview())
        return FINE if words else BAD_USE
    command = COMMANDS.get(words[0])
    if command is None:
        sys.stderr.write(f"{PROGRAM}: {words[0]!r} is no subcommand; {nearest(words[0], COMMANDS)}\n")
        return BAD_USE
    return command.run(words[1:])


def overview() -> str:
    """The subcommands, each with an example."""
    lines = ["Debug PyTorch models op by op, from a terminal.", "", f"usage: {PROGRAM} COMMAND [OPTIONS]", ""]
    for command in COMMANDS.values():
        lines += [f"  {command.name:<8}{command.summary}", f"          {PROGRAM} {command.example}"]
    return "\n".join([*lines, "", f"{PROGRAM} COMMAND --help tells the rest."])
