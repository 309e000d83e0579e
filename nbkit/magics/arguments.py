"""LineParser reads the options of a magic: errors become one red line, a mistyped option names the nearest."""

import argparse
import keyword
import shlex
from collections.abc import Callable
from typing import NoReturn

from IPython.core.error import UsageError

from nbkit.verbs.options.parser import HELP_OPTIONS, OptionParser, absolute_path, whole_number
from nbkit.verbs.verb import Recorder

AS_BARE = (
    "The cell runs as it would without this line: same value, output and exception. The trace is shown below the "
    "cell's own output and kept as _{}, also after an error or an interrupt, then marked incomplete."
)


class LineParser(OptionParser):
    """Parser of the text behind the name of a magic; raises UsageError."""

    def __init__(self, prog: str, description: str, help_text: str = "print this text") -> None:
        super().__init__(prog, description)
        self.add_argument(*HELP_OPTIONS, action="store_true", help=help_text)

    def parse_line(self, line: str) -> argparse.Namespace:
        """Parses the options in `line`. Raises UsageError, which IPython shows as one line."""
        try:
            words = _split(line)
        except ValueError as error:
            self.error(f"cannot read the options {line!r}: {str(error).lower()}; close the quote.")
        return self.parse_words(words)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {self.plain(message)}")


class MagicParser(LineParser):
    """Parser of the text behind `%%verb`: the options that every verb has, then its own."""

    def __init__(self, verb: str, recorder: Recorder) -> None:
        description = f"{recorder.description}\n\n{AS_BARE.format(verb)} {recorder.notes}"
        super().__init__(f"%%{verb}", description, "print this text; the cell is not run")
        add_result_options(self, verb)
        self.add_argument(
            "--save", type=absolute_path, metavar="PATH", help="write the trace as the folder PATH after the cell"
        )
        recorder.add_options(self)
        if recorder.is_repeated:
            for short, option, least, meaning in (
                ("-w", "--warmup", 0, "run the cell N times before it is recorded (default: 0)"),
                ("-r", "--repeats", 1, "record N runs of the cell instead of one"),
            ):
                self.add_argument(short, option, type=whole_number(least), default=0, metavar="N", help=meaning)

    def unknown_sentence(self, word: str) -> str:
        if not word.startswith("-"):
            return f"{word!r} is not an option; code goes on the lines below, {self.prog} --help lists the options."
        return super().unknown_sentence(word)


def add_result_options(parser: LineParser, verb: str) -> None:
    """Adds the options that say where the trace goes."""
    output = f"store the trace under NAME; the last trace is always there as _{verb}"
    parser.add_argument("-o", "--output", type=_python_name, metavar="NAME", help=output)
    parser.add_argument("-q", "--quiet", action="store_true", help="store the trace without showing it")


class MagicFunction:
    """Is what IPython calls as a magic: a function whose docstring is the help, made when asked for."""

    def __init__(self, name: str, run: Callable[..., object], parser: Callable[[], LineParser]) -> None:
        self.__name__, self._run, self._parser = name, run, parser

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        return self._parser().format_help()

    def __call__(self, *texts: str) -> object:
        __tracebackhide__ = True
        return self._run(*texts)


def wants_help(line: str) -> bool:
    """Tells whether one of the options in `line` asks for the help text."""
    try:
        return any(word in HELP_OPTIONS for word in _split(line))
    except ValueError:
        return False


def _split(line: str) -> list[str]:
    words = shlex.shlex(line, posix=True, punctuation_chars=False)
    words.whitespace_split = True
    words.commenters = ""
    # Backslashes belong to regular expressions and Windows paths, so they escape nothing.
    words.escape = ""
    return list(words)


def _python_name(text: str) -> str:
    if not text.isidentifier() or keyword.iskeyword(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a Python name; use letters, digits and _.")
    return text
