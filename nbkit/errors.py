"""Defines what nbkit raises: one sentence each, saying what is wrong, what was expected and what to do."""

from collections.abc import Iterable
from difflib import get_close_matches


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


def first_line(error: BaseException) -> str:
    """Returns the first line of what an error says, its type if it says nothing."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def nearest(name: str, known: Iterable[str]) -> str:
    """Returns known names closest to a mistyped one, as the end of an error sentence; all where none is close."""
    known = sorted(known)
    close = get_close_matches(name, known, n=3, cutoff=0.5)
    return f"did you mean {' or '.join(map(repr, close))}?" if close else f"known are {', '.join(known)}."
