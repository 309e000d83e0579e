"""Writes what the command line says: results to stdout, all else to stderr."""

import os
import sys
from typing import TextIO

from nbkit.progress import SWITCH


def show(text: str) -> None:
    """Print a result; a reader that has gone away (`| head`) is no error."""
    try:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # Python would try again at exit, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class Narrator:
    """Writes beside the output of a script, on the stderr that there was before it began."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = sys.stderr if stream is None else stream

    def say(self, text: str) -> None:
        """Writes a line that has to be read."""
        self.show(f"nbkit: {text}")

    def show(self, text: str) -> None:
        """Writes lines that need no name in front."""
        try:
            self.stream.write(f"{text}\n")
            self.stream.flush()
        except (OSError, ValueError):  # closed by the script: there is nobody to tell
            pass

    def progress(self, text: str) -> None:
        """Writes a line for a person who waits, in a terminal only, unless NBKIT_PROGRESS=0 says not to."""
        if os.environ.get(SWITCH) != "0" and not self.stream.closed and self.stream.isatty():
            self.say(text)
