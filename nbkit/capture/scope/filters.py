"""Reads the options by which verbs choose calls: by op, module, phase and number."""

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from inspect import Parameter, signature
from textwrap import fill
from typing import Any, TypedDict, TypeVar, get_args

from nbkit.capture.frames.selection import Selection
from nbkit.errors import NbkitError, OptionError, nearest
from nbkit.patterns import Patterns, split_patterns

PHASES = ("forward", "backward", "optimizer", "other")
EVERY_PHASE = frozenset(PHASES)
CallNumbers = int | str | Sequence[int] | None
PART = re.compile(r"(\d+)?(:)?(\d+)?")
MEANINGS = {
    "ops": "only ops that fit, an API call with the ops below it; all if None. One text with commas or a list of "
    "literal names (`linear`, `aten.add`), globs (`*norm*`) or `re:` and a regular expression.",
    "exclude_ops": "leave out ops that fit.",
    "modules": "only ops inside modules that fit, by their named_modules() path. A module brings all that it holds.",
    "exclude_modules": "leave out ops inside modules that fit.",
    "backward": "also the calls that compute the gradients of those which `ops` means: those of their autograd nodes.",
    "phases": "only these: forward, backward, optimizer, other; all if None.",
    "calls": 'which calls of each op, counted from 0: "0", "0,2", "2:5", "10:"; all if None.',
}
# The line of a docstring that MEANINGS takes the place of.
LINE = re.compile(r"^( *)\*\*filters: .*\n", re.MULTILINE)
Verb = TypeVar("Verb", bound=Callable[..., Any])


class OpFilters(TypedDict, total=False):
    """Holds the options of a verb that choose ops; each lets all through where it is None."""

    ops: Patterns
    exclude_ops: Patterns
    modules: Patterns
    exclude_modules: Patterns
    backward: bool


class PhaseFilters(OpFilters, total=False):
    """Holds the options of a verb that choose ops and phases."""

    phases: Patterns


class CallFilters(PhaseFilters, total=False):
    """Holds the options of a verb that choose ops, phases and calls."""

    calls: CallNumbers


def selection_of(filters: Mapping[str, Any]) -> Selection:
    """Returns the ops and modules that are meant. Raises PatternError, OptionError."""
    options = {name: filters[name] for name in OpFilters.__annotations__ if filters.get(name) is not None}
    backward = options.get("backward", False)
    if backward not in (True, False):
        raise OptionError(f"backward must be True or False, got {backward!r}.")
    if backward and "backward" not in checked_phases(filters.get("phases")):
        raise OptionError(
            f"backward=True asks for calls of the backward pass, and phases={filters['phases']!r} leaves them out; "
            f"leave phases out, or add backward to it."
        )
    return Selection(**options)


def with_filters(verb: Verb) -> Verb:
    """Has signature and docstring of a verb list what its `**filters` may be; others are refused with a TypeError."""
    listed: Any = verb
    function = listed.__init__ if isinstance(verb, type) else verb
    *own, filters = signature(function).parameters.values()
    kinds = get_args(filters.annotation)[0].__annotations__
    first = next(place for place, one in enumerate(own) if one.kind is one.KEYWORD_ONLY)
    own[first:first] = [Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=kinds[name]) for name in kinds]
    accepted = signature(function).replace(parameters=own)

    @wraps(function)
    def checked(*args: Any, **options: Any) -> Any:
        accepted.bind(*args, **options)
        found = from_environment(verb.__name__, kinds, options)
        if not found:
            return function(*args, **options)
        variables = ", ".join(f"{variable}={text}" for variable, text in found.values())
        try:
            result = function(*args, **options | {name: _read(name, *pair) for name, pair in found.items()})
        except NbkitError as error:
            raise type(error)(f"{error} The environment has {variables}.") from error
        note = f"The environment chose the calls: {variables}."
        if isinstance(verb, type):
            args[0].notes = [note]
        else:
            result.meta["notes"] = [note, *result.meta.get("notes", [])]
        return result

    checked.__signature__ = accepted  # type: ignore[attr-defined]
    if isinstance(verb, type):
        listed.__init__ = checked
    else:
        listed = checked
    texts = [f"{name}: {MEANINGS[name]}" for name in kinds]
    listed.__doc__ = LINE.sub(lambda line: "".join(_indented(text, line[1]) for text in texts), listed.__doc__ or "")
    return listed  # type: ignore[no-any-return]


def from_environment(verb: str, names: Iterable[str], options: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Returns the variable and its text for each filter that the environment sets and the call leaves open.

    NBKIT_OPCAPTURE_OPS is for one verb and comes before NBKIT_OPS, which is for all; an empty one is none.
    """
    found = {}
    for name in names:
        if (given := options.get(name)) is None or given is False:  # 0 is a call
            for variable in (f"NBKIT_{name}".upper(), f"NBKIT_{verb}_{name}".upper()):
                if text := os.environ.get(variable):
                    found[name] = variable, text
    return found


def _read(name: str, variable: str, text: str) -> str | bool:
    """Returns what a variable says. Raises OptionError."""
    if name != "backward":
        return text
    if text not in ("0", "1"):
        raise OptionError(f"{variable}={text!r} is neither 0 nor 1; set 1 for the calls of the backward pass, too.")
    return text == "1"


def _indented(text: str, indent: str) -> str:
    return fill(text, 120, initial_indent=indent, subsequent_indent=f"{indent}    ") + "\n"


def checked_phases(phases: object) -> frozenset[str]:
    """Returns the phases that are meant, all for None. Raises OptionError."""
    if phases is None:
        return EVERY_PHASE
    wanted = split_patterns(phases)  # type: ignore[arg-type]  # refused below if it is no text
    for phase in wanted:
        if phase not in PHASES:
            raise OptionError(f"phases={phase!r} is not known; {nearest(phase, PHASES)}")
    if not wanted:
        raise OptionError(f"phases={phases!r} names no phase; known are {', '.join(PHASES)}.")
    return frozenset(wanted)


def checked_calls(calls: CallNumbers) -> Callable[[int], bool] | None:
    """Returns whether a call of an op is meant by its number, counted from 0 for each op; None where all are.

    `calls` is a number, a list of numbers, or text such as "0", "0,2", "2:5" (2, 3 and 4) and "10:".
    Raises OptionError.
    """
    if calls is None:
        return None
    parts = [str(calls)] if isinstance(calls, int) else calls.split(",") if isinstance(calls, str) else calls
    try:
        ranges = [_range(str(part).strip()) for part in parts]
    except (TypeError, ValueError) as error:
        raise OptionError(
            f"calls={calls!r} names no calls; give a number, several with commas, or a range such as '2:5'."
        ) from error
    return lambda number: any(start <= number and (stop is None or number < stop) for start, stop in ranges)


def _range(text: str) -> tuple[int, int | None]:
    match = PART.fullmatch(text)
    if match is None or not text:
        raise ValueError(text)
    start, colon, stop = match.groups()
    first = int(start or 0)
    return first, (int(stop) if stop else None) if colon else first + 1
