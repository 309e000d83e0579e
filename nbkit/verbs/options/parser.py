"""OptionParser reads options for magics and the command line: full names only, a mistyped one names the nearest."""

import argparse
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import TextWrapper
from typing import Any

from nbkit.errors import nearest

HELP_OPTIONS = ("-h", "--help")
MISSING = "the following arguments are required: "


class _HelpFormatter(argparse.HelpFormatter):
    """Writes help of 80 columns, whatever terminal it is read in; indented paragraphs, which are examples, stay."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=80, max_help_position=28)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        filled = TextWrapper(width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False).fill
        return "\n\n".join(part if part.startswith(" ") else filled(part) for part in text.split("\n\n"))


class OptionParser(argparse.ArgumentParser):
    """Reads full option names only; what it cannot read becomes one sentence for `error`."""

    def __init__(self, prog: str, description: str, **settings: Any) -> None:
        super().__init__(
            prog=prog,
            description=description,
            formatter_class=_HelpFormatter,
            add_help=False,
            allow_abbrev=False,
            **settings,
        )

    def parse_words(self, words: Sequence[str]) -> argparse.Namespace:
        """Returns the options in `words`."""
        options, unknown = self.parse_known_args(words)
        if unknown:
            self.error(self.unknown_sentence(unknown[0]))
        return options

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Say of a value that is none of an option's choices what the verb itself says of it."""
        if action.choices is not None and value not in action.choices:
            message = f"{action.dest}={value!r} is not known; {nearest(str(value), action.choices)}"
            raise argparse.ArgumentError(None, message)

    @staticmethod
    def plain(message: str) -> str:
        """Returns what argparse says of missing options and arguments in plain words, other messages as they are."""
        names = message.removeprefix(MISSING)
        return message if names == message else f"{names} {'are' if ', ' in names else 'is'} missing."

    def unknown_sentence(self, word: str) -> str:
        """Returns what is wrong with a word that is no option and no argument."""
        if not word.startswith("-"):
            return f"{word!r} is one argument too many; {self.prog} --help lists them."
        name = word.partition("=")[0]
        return f"unknown option {name!r}; {nearest(name, self.long_options())}"

    def long_options(self) -> list[str]:
        """Returns names of the options there are."""
        return [option for option in self._option_string_actions if option.startswith("--")]


def whole_number(least: int) -> Callable[[str], int]:
    """Returns what reads an option's text as a count from `least` up."""

    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a count; give a whole number from {least} up.")
        return int(text)

    return read


def integer(text: str) -> int:
    """Returns the whole number that an option's text is; which ones it may be, says the verb."""
    try:
        return int(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number; write it in digits, such as 8.") from error


def number(text: str) -> float:
    """Returns the number that an option's text is; which ones it may be, says the verb."""
    try:
        return float(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number; write it in digits, such as 8 or 0.5.") from error


def absolute_path(text: str) -> Path:
    """Returns the path that an option's text names, wherever the process goes later."""
    return Path(text).expanduser().absolute()


@contextmanager
def telling_new_folders(outputs: Iterable[object], tell: Callable[[str], object]) -> Iterator[None]:
    """Calls `tell` with a sentence on each folder that had to be made for one of the paths among `outputs`."""
    missing = {path.parent for path in outputs if isinstance(path, Path) and not os.path.exists(path.parent)}
    yield
    for folder in sorted(missing):
        if folder.is_dir():
            tell(f"made the folder {folder}")
