"""Defines what nbkit raises: one sentence each, saying what is wrong, what was expected and what to do."""

import os
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from traceback import walk_tb

_PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
# The simulated device stands for a device: what its kernels refuse is the step's.
_DEVICE = os.path.join(_PACKAGE, "simulated", "")


class NbkitError(Exception):
    """Serves as base of every error nbkit raises on bad input."""


class SchemaError(NbkitError):
    """A frame does not have the columns or dtypes its table promises."""


class TraceError(NbkitError):
    """A trace cannot be saved or read."""


class PatternError(NbkitError):
    """An op or module pattern cannot be used."""


class OptionError(NbkitError):
    """An option of a verb has a value it does not know."""


class RecorderError(NbkitError):
    """The native recorder cannot be built or used."""


class NonFiniteError(NbkitError):
    """opcheck stopped the step at the first op that made a NaN, an Inf or nothing but underflow."""


class CostError(NbkitError):
    """opcost cannot go on: an op needs values, has no rule for its result's shape, or a device that is not there."""


def check_version(path: Path, found: int, expected: int) -> None:
    """Raises TraceError if `path` is of another version of nbkit's own format than this nbkit writes and reads."""
    if found != expected:
        raise TraceError(
            f"{path} has format version {found}, and this nbkit reads format version {expected} only; record it again "
            "with this version of nbkit, or open it with the one that wrote it."
        )


def is_own_file(name: str) -> bool:
    """Returns whether a file is nbkit's own, so that what fails in it is nbkit's failure."""
    return name.startswith(_PACKAGE) and not name.startswith(_DEVICE)


def place_in_nbkit(error: BaseException) -> str:
    """Returns the innermost line of nbkit that an error came through: `nbkit/capture/profiler/kineto.py:90`."""
    lines = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
    own = [f"nbkit/{name.removeprefix(_PACKAGE)}:{line}" for name, line in lines if is_own_file(name)]
    return own[-1].replace(os.sep, "/") if own else "nbkit"


def nbkit_failed(kind: str, message: str, place: str) -> str:
    """Returns the sentence that begins where nbkit itself has failed."""
    return f"nbkit itself failed ({kind}: {message}, at {place})"


def please_report(sentence: str) -> str:
    """Appends to a sentence about such a failure how to report it."""
    return f"{sentence} Please open an issue with this text, the traceback and what `python -m nbkit info` prints."


def first_line(error: BaseException) -> str:
    """Returns the first line of what an error says, its type if it says nothing."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def nearest(name: str, known: Iterable[str]) -> str:
    """Returns known names closest to a mistyped one, as the end of an error sentence; all where none is close."""
    known = sorted(known)
    close = get_close_matches(name, known, n=3, cutoff=0.5)
    return f"did you mean {' or '.join(map(repr, close))}?" if close else f"known are {', '.join(known)}."
