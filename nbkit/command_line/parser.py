"""CommandParser reads the options of a subcommand: errors are one sentence on stderr and exit status 2."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from nbkit.errors import NbkitError
from nbkit.verbs.options.parser import HELP_OPTIONS, OptionParser
from nbkit.verbs.verb import BAD_USE, PROGRAM


class CommandParser(OptionParser):
    """Reads the words behind the name of a subcommand; ends the process on `--help` and on bad use."""

    about_unknown = ""

    def __init__(self, command: str, description: str, **settings: Any) -> None:
        super().__init__(f"{PROGRAM} {command}", description, **settings)
        self.add_argument(*HELP_OPTIONS, action="help", help="print this text")

    def unknown_sentence(self, word: str) -> str:
        return f"{super().unknown_sentence(word)}{self.about_unknown}"

    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"{self.prog}: {self.plain(message)}\n")
        sys.exit(BAD_USE)


@contextmanager
def bad_use(command: str) -> Iterator[None]:
    """Ends the process with one sentence where nbkit cannot use what it was given."""
    try:
        yield
    except NbkitError as error:
        sys.stderr.write(f"{PROGRAM} {command}: {error}\n")
        sys.exit(BAD_USE)
