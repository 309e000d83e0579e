"""Reads which calls of each op are meant: the first, a range, a list."""

import re
from collections.abc import Callable, Sequence

from nbkit.errors import OptionError

CallNumbers = int | str | Sequence[int] | None
PART = re.compile(r"(\d+)?(:)?(\d+)?")


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
