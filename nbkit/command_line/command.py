"""Command: one subcommand of `python -m nbkit`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

PROGRAM = "python -m nbkit"
FINE, FINDINGS, BAD_USE = 0, 1, 2


@dataclass(frozen=True)
class Command:
    """A subcommand; `nbkit.command_line.main.COMMANDS` lists them.

    `run` is given the words behind its name and gives back the exit status; it raises NbkitError on what it cannot use.
    `example` is a line that shows its use.
    """

    name: str
    summary: str
    example: str
    run: Callable[[Sequence[str]], int]
